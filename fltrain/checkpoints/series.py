"""One checkpoint after another: a base, then the rows that changed, until a base is due again."""

from collections.abc import Iterable, Sequence

from torch import Tensor

from .. import tree
from ..interface import State
from .heads import read_head
from .names import Place, chain_of
from .snapshot import Snapshot
from .state_digest import count_parties
from .store import Bound, CheckpointStore


class CheckpointSeries:
    """The checkpoints that a run writes while it trains.

    A checkpoint holds the rows of parties that changed since the one before, and a whole state, a
    base, where that and all changed rows since the last base would be no smaller than one.

    Parameters
    ----------
    store : CheckpointStore
        Which ends in the checkpoint of the round after which the run starts.
    round : int
        That round.
    """

    def __init__(self, store: CheckpointStore, round: int):
        self.store = store
        self._changed: set[int] = set()  # parties, since the last checkpoint
        self._before = ""  # the digest of its head; "" where it is of an earlier version, or none
        self._grown = 0  # bytes of changed rows since the last base
        self._is_taken = False  # whether something was taken that is not written
        places = [place for place in store.list_places() if place.round <= round]
        ending = None
        if places and not store.is_regular(places[-1].round):
            ending = places.pop()
        if places:
            self._follow(chain_of(places, places[-1].round))
        if ending is not None:
            self._pass_over(ending)

    def _follow(self, chain: Sequence[Place]) -> None:
        """Go on behind checkpoints, a base and changed rows behind it."""
        for place in chain:
            head, self._before = read_head(self.store.folder, place)
            self._grown = 0 if place.is_base else self._grown + (head.bytes or 0)

    def _pass_over(self, ending: Place) -> None:
        """Go on behind a checkpoint in which the run ended when it had fewer rounds.

        The next one is what it is in a run that never had this one: it stands on the one before,
        and a base that was due here is due there, where no fewer rows have changed.
        """
        if ending.is_base:
            self._before = ""
        else:
            self._changed.update(self.store.read_rows(ending))

    def note(self, changed: Iterable[int]) -> None:
        """Take note of parties whose rows changed."""
        self._changed.update(changed)

    def take(self, state: State) -> Snapshot:
        """Return what the next checkpoint holds, whose round is the last one that was noted.

        Where the one before it was never written, it is a base: the rows of that one are in none.
        """
        rows = sorted(self._changed) if self._is_worthwhile(state) else None
        # First, so that this holds wherever Ctrl-C comes until it is written.
        self._is_taken = True
        self._changed = set()
        return Snapshot(state, rows)

    def write(self, snapshot: Snapshot, round: int, bound: Bound) -> None:
        """Write the checkpoint of a round."""
        before = "" if snapshot.is_base else self._before
        written = self.store.write_snapshot(snapshot, round, bound, before)
        self._before = written.digest
        self._grown = 0 if snapshot.is_base else self._grown + written.bytes
        self._is_taken = False

    def _is_worthwhile(self, state: State) -> bool:
        """Return whether changed rows are enough, so that no base is due."""
        if self._is_taken or not self._before:
            return False
        n_parties = count_parties(state)
        of_parties = sum(map(_count_bytes, tree.leaves(state.parties)))
        others = sum(map(_count_bytes, tree.leaves(state.parts))) - of_parties
        changed = others
        if n_parties:
            changed += len(self._changed) * of_parties // n_parties
        return self._grown + changed < others + of_parties


def _count_bytes(leaf: Tensor) -> int:
    return leaf.numel() * leaf.element_size()
