"""The right answers of a model, counted by compiled code: the forward pass alone."""

import ctypes
import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from ...inputs.examples import PartyExamples
from ...tree import Tree
from .arguments import BYTES, StepArguments, address_of, flatten_parameters
from .layers import LANES, LayerTable

# Examples of a call: some milliseconds of work, so that threads end together and none of them
# waits for Python.
_PIECE = 512


def score_examples(
    library: ctypes.CDLL,
    layers: LayerTable,
    pool: ThreadPoolExecutor,
    params: Tree,
    examples: PartyExamples,
    start: int,
    end: int,
) -> tuple[int, float]:
    """Return (number right, summed loss) of one model on examples start..end.

    In pieces that do not depend on the number of threads. MemoryError where there is none for a
    batch.
    """
    w = flatten_parameters(params, layers)
    pieces = []
    for first in range(start, end, _PIECE):
        pieces.append(slice(first, min(first + _PIECE, end)))

    def score(at: slice) -> tuple[int, float]:
        return _score_piece(library=library, layers=layers, w=w, examples=examples, at=at)

    # a few examples are done sooner than a thread would begin with them
    scores: Iterable[tuple[int, float]]
    scores = pool.map(score, pieces) if len(pieces) > 1 else map(score, pieces)
    rights, losses = [], []
    for right, loss in scores:
        rights.append(right)
        losses.append(loss)
    return sum(rights), math.fsum(losses)


def _score_piece(
    library: ctypes.CDLL,
    layers: LayerTable,
    w: Tensor,
    examples: PartyExamples,
    at: slice,
) -> tuple[int, float]:
    """Return (number right, summed loss) by one call."""
    prepare = examples.prepare
    # augmentation is for training alone; bytes go as they are where nothing else is done to them
    is_plain = prepare.normalise is None and not prepare.noise
    x = examples.take(at) if is_plain else examples.inputs(at).float().contiguous()
    y = examples.y[at].contiguous()
    order = torch.arange(len(y))
    right, loss = ctypes.c_int64(), ctypes.c_double()
    arguments = StepArguments(
        ops=address_of(layers.ops),
        n_ops=len(layers.ops),
        features=x[0].numel(),
        parameters=w.numel(),
        w=address_of(w),
        x=address_of(x),
        bytes=address_of(BYTES) if x.dtype == torch.uint8 else None,
        y=address_of(y),
        order=address_of(order),
        per_epoch=len(y),
        batch=min(LANES, len(y)),
    )
    is_full = library.fltrain_score(
        ctypes.byref(arguments), ctypes.byref(right), ctypes.byref(loss)
    )
    if is_full:
        raise MemoryError(
            "engine native found no memory for the tensors of a batch of evaluation; "
            "lower --workers"
        )
    return right.value, loss.value
