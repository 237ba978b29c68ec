"""A state as it was after a round, while later rounds write into it: what a checkpoint is made of.

Models, buffers and server are never written in place, so they are what they were. Rows of parties
are. They are left where they are until they are written down, and a round that writes a row over
before that has it held here: so a snapshot costs the rows of the rounds that train meanwhile, and
no copy of the state.
"""

import threading
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from .. import tree
from ..interface import State
from .state_digest import count_parties, to_bytes
from .tensor_file import Bytes, TensorSource, read_whole

ROWS = "rows"  # the tensor that says whose rows changed: no path of a state, which has a "/"
PARTIES = "parties/"

# What may be held: a part of the state, and of a small state all.
HELD_SHARE = 0.2
_ALWAYS_HELD = 64 << 20


class Snapshot:
    """What a checkpoint holds of a state.

    Parameters
    ----------
    state : State
    rows : sequence of int, optional
        The parties whose rows it holds; None for all, as a base does.
    """

    def __init__(self, state: State, rows: Sequence[int] | None = None):
        flat = tree.flatten(state.parts)
        self.names = list(flat)
        self.empty = tree.empties(state.parts)
        self.is_base = rows is None
        self._whole = {name: leaf for name, leaf in flat.items() if not name.startswith(PARTIES)}
        self._leaves = {name: leaf for name, leaf in flat.items() if name.startswith(PARTIES)}
        parties = range(count_parties(state)) if rows is None else rows
        self._parties = torch.tensor(parties, dtype=torch.int64)
        self._wanted = frozenset(parties)
        self._held: dict[int, dict[str, Bytes]] = {}
        self._lock = threading.Lock()
        self._row_bytes = sum(leaf[:1].nbytes for leaf in self._leaves.values())
        n_bytes = sum(leaf.nbytes for leaf in flat.values())
        self._most_held = max(HELD_SHARE * n_bytes, _ALWAYS_HELD)

    def hold(self, parties: Iterable[int]) -> bool:
        """Hold the rows of parties, which are written over next.

        Return whether there was room; else nothing is held, and they may not be written over before
        the snapshot is written down.
        """
        new = self._wanted.intersection(parties).difference(self._held)
        if (len(self._held) + len(new)) * self._row_bytes > self._most_held:
            return False
        with self._lock:
            for party in sorted(new):
                at = torch.tensor([party])
                rows = {name: _gather(leaf, at)[0] for name, leaf in self._leaves.items()}
                self._held[party] = rows
        return True

    def list_sources(self) -> dict[str, TensorSource]:
        """Return the tensors of the checkpoint."""
        sources = {name: read_whole(leaf) for name, leaf in self._whole.items()}
        if not self.is_base:
            sources[ROWS] = read_whole(self._parties)
        for name, leaf in self._leaves.items():
            sources[name] = self._read_rows(name, leaf)
        return sources

    def _read_rows(self, name: str, leaf: Tensor) -> TensorSource:
        n = len(self._parties)

        def read(first: int, last: int) -> Bytes:
            at = self._parties[first:last]
            with self._lock:
                block = _gather(leaf, at)
                for i, party in enumerate(at.tolist()):
                    if party in self._held:
                        block[i] = self._held[party][name]
            return block

        return TensorSource(leaf.dtype, (n, *leaf.shape[1:]), n, read)


def _gather(leaf: Tensor, at: Tensor) -> Bytes:
    """Return copies of rows of a leaf, as bytes on the host, [R, bytes]."""
    if leaf.is_cpu and leaf.is_contiguous():
        # In numpy it takes one thread; torch would have a team of its own beside training.
        copied: Bytes = np.take(to_bytes(leaf).numpy(), at.numpy(), axis=0)
    else:
        copied = to_bytes(leaf[at.to(leaf.device)]).numpy()
    return copied
