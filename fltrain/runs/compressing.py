"""Uploads that are compressed on their way: an algorithm whose parties send less, and remember it.

What an algorithm does is not changed: its job ends with the same model, of whose update the server
gets what arrives. State.parties.residual [P, ...] is what has not arrived yet, where there is error
feedback.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..algorithms import ALGORITHMS
from ..compressors import UpdateDraw, find_compressor
from ..counting import ceil_div
from ..interface import Algorithm, Hyper, Info, Local, Plan, State, Task, Work
from ..settings import Settings
from ..settings.exchange import ExchangeSettings
from ..tree import Tree
from .traffic import count_down, mask_idle

RESIDUAL = "residual"  # in what a party keeps


def compress_uploads(algorithm: Algorithm, settings: Settings) -> Algorithm:
    """Return the algorithm with uploads as the settings compress them; as it is without.

    UsageError for one whose parties do not upload as FedAvg's do: of the rest it is not known what
    the server makes of a part, or what a party has to remember.
    """
    if settings.compress is None:
        return algorithm
    _require_plain_uploads(algorithm)
    compression = Compression.of(settings)
    compressed = replace(
        algorithm,
        init=_Init(algorithm, compression) if compression.has_memory else algorithm.init,
        finish=_Finish(algorithm.finish, compression),
        traffic=_Traffic(algorithm, compression),
    )
    if algorithm.provenance is None or not algorithm.spec:
        return compressed
    # name, options and settings together build it again
    origin = replace(algorithm.provenance, built=compressed)
    return replace(compressed, provenance=origin)


def _require_plain_uploads(algorithm: Algorithm) -> None:
    if algorithm.pooled:
        raise UsageError(f"{algorithm.name} sends nothing to compress; leave compress out")
    plain = ALGORITHMS.find("fedavg")().finish
    if algorithm.finish is not plain:
        raise UsageError(
            f"compress is of updates that are uploaded as FedAvg's are, and {algorithm.name} "
            "uploads or keeps something else; leave compress out, or take fedavg, fedprox, "
            "fedavgm, fedadam, fedsam or another that changes steps or the server alone"
        )


@dataclass(frozen=True)
class Compression:
    """How updates are compressed: by one entry of `fltrain.compressors`, with these settings.

    numbers: those of compression alone, so that runs that differ in others share a stack.
    """

    numbers: ExchangeSettings

    @classmethod
    def of(cls, settings: Settings) -> "Compression":
        """Return the compression that settings ask for."""
        numbers = {one.name: getattr(settings, one.name) for one in fields(ExchangeSettings)}
        return cls(ExchangeSettings(**numbers))

    @property
    def has_memory(self) -> bool:
        """Whether parties remember what has not arrived."""
        return self.numbers.error_feedback

    def compress(self, update: Tree, key: int | Tensor) -> Tree:
        """Return what arrives of a job's update."""
        blocks = self._split(update)
        compressor = find_compressor(str(self.numbers.compress))
        arrived: Tree = {}
        for number, names in enumerate(blocks):
            parts = [update[name] for name in names]
            row = torch.cat([part.reshape(-1) for part in parts])
            sent = compressor.compress_by(self.numbers, row, UpdateDraw(key, number))
            pieces = torch.split(sent, [part.numel() for part in parts])
            for name, part, piece in zip(names, parts, pieces, strict=True):
                arrived[name] = piece.reshape(part.shape).to(part.dtype)
        return arrived

    def count_bytes(self, models: Tree) -> int:
        """Return the bytes of a compressed update of a model, [M, ...]: whole ones a block."""
        compressor = find_compressor(str(self.numbers.compress))
        total = 0
        for names in self._split(models):
            n = sum(models[name][0].numel() for name in names)
            width = 8 * models[names[0]].element_size()
            total += ceil_div(compressor.count_bits_by(self.numbers, n, width), 8)
        return total

    def _split(self, tensors: Tree) -> list[list[str]]:
        """Return the names of the tensors of each block."""
        if self.numbers.compress_by == "tensor":
            return [[name] for name in tensors]
        return [list(tensors)]


@dataclass(frozen=True)
class _Init:
    """An algorithm's `init`, with nothing remembered yet."""

    algorithm: Algorithm
    compression: Compression

    def __call__(self, task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
        state = self.algorithm.init(task, info, models, buffers, hyper)
        zero = tree.zeros_like(tree.index(models, 0))
        residual = {RESIDUAL: tree.repeat(zero, len(info.n))}
        return replace(state, parties=state.parties | residual)


@dataclass(frozen=True)
class _Finish:
    """An algorithm's `finish`, of the model that arrives."""

    finish: Callable[[Task, Local, Work], tuple[Tree, Tree]]
    compression: Compression

    def __call__(self, task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
        update = tree.map(torch.sub, local.params, local.start)
        if self.compression.has_memory:
            update = tree.map(torch.add, update, local.own[RESIDUAL])
        sent = self.compression.compress(update, local.key)
        arrived = tree.map(lambda w, u: w.double() + u.double(), local.start, sent)
        upload, own = self.finish(task, local._replace(params=arrived), work)
        if self.compression.has_memory:
            own = own | {RESIDUAL: tree.map(torch.sub, update, sent)}
        return upload, own


@dataclass(frozen=True)
class _Traffic:
    """What moves: the model down as ever, the compressed update up, and buffers as they are."""

    algorithm: Algorithm
    compression: Compression

    def __call__(self, state: State, plan: Plan, task: Task, hyper: Hyper) -> tuple[Tensor, Tensor]:
        buffers = tree.nbytes(tree.index(state.buffers, 0))
        up = self.compression.count_bytes(state.models) + buffers
        return count_down(self.algorithm, state, plan, task), mask_idle(plan, up)
