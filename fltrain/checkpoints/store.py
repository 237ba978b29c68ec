"""The checkpoints of a run: written one after another, read back whole or not at all."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from torch import Tensor

from niidpart.temporaries import name_of_temporary

from .. import tree
from ..disk.plain_folder import PlainFolder, RunError
from ..interface import State
from .heads import DAMAGE, Head, read_head, write_head
from .keeping import choose_kept
from .names import Place, chain_of, find_places, list_own_names, order_of_removal
from .snapshot import PARTIES, ROWS, Snapshot
from .state_digest import digest_state
from .tensor_file import TensorReader, lay_out

Block = bytes | memoryview


class Bound(NamedTuple):
    """What a checkpoint is bound to: the digests of configuration, metrics line and state."""

    config: str
    metrics: str
    state: str


class Written(NamedTuple):
    """What a checkpoint took: the digest of its head, and the bytes of its tensors."""

    digest: str
    bytes: int


class Loaded(NamedTuple):
    """The files of one checkpoint: its head, the digest of that, and its tensors."""

    head: Head
    digest: str
    tensors: dict[str, Tensor]


class Restored(NamedTuple):
    """A checkpoint that was read."""

    head: Head
    state: State


@dataclass(frozen=True)
class CheckpointStore:
    """The folder `checkpoints` of a run.

    Parameters
    ----------
    folder : PlainFolder
        In which no link is followed.
    every : int
        Rounds between checkpoints. One of another round, in which a run ended, counts while it is
        the newest: the run may have got more rounds since, and later ones do not stand on it.
    """

    folder: PlainFolder
    every: int = 1

    def list_places(self) -> list[Place]:
        """Return the checkpoints there are, oldest first."""
        return self._choose_places(self.folder.list_names())

    def _choose_places(self, names: Iterable[str]) -> list[Place]:
        places = find_places(names)
        return [place for place in places[:-1] if self.is_regular(place.round)] + places[-1:]

    def is_regular(self, round: int) -> bool:
        """Return whether a run has a checkpoint after that round, however many follow."""
        return round % self.every == 0

    def list_headless(self) -> list[str]:
        """Return the files of tensors that have no head, and so are of no checkpoint."""
        names = self.folder.list_names()
        with_head = {name for place in find_places(names) for name in (place.head, place.tensors)}
        return [name for name in list_own_names(names) if name not in with_head]

    def write(
        self,
        state: State,
        round: int,
        bound: Bound,
        rows: Sequence[int] | None = None,
        before: str = "",
    ) -> Written:
        """Write the state after a round.

        rows: the parties whose rows changed since the checkpoint whose head has the digest
        `before`, which is then needed to read this one; None to write a base.
        """
        return self.write_snapshot(Snapshot(state, rows), round, bound, before)

    def write_snapshot(
        self,
        snapshot: Snapshot,
        round: int,
        bound: Bound,
        before: str = "",
    ) -> Written:
        """Write the snapshot of the state after a round, as `write` does."""
        place = Place(round, is_base=snapshot.is_base)
        self._drop_other(place)
        file = lay_out(snapshot.list_sources())
        digest = hashlib.sha256()
        # The tensors first: checkpoints are found by their heads, so a run that is killed between
        # the two files has left none, rather than half of one.
        blocks = _digest_blocks(file.make_blocks(), digest)
        self.folder.write_blocks(place.tensors, blocks, file.n_bytes, is_last=False)
        head = Head(
            round=round,
            kind="base" if snapshot.is_base else "rows",
            names=snapshot.names,
            empty=snapshot.empty,
            bytes=file.n_bytes,
            sha256=digest.hexdigest(),
            before=before,
            **bound._asdict(),
        )
        return Written(write_head(self.folder, head), file.n_bytes)

    def _drop_other(self, place: Place) -> None:
        """Remove what failed when its round was to have a checkpoint of the other kind.

        Its tensors would be taken for those of this one.
        """
        other = Place(place.round, is_base=not place.is_base)
        if other.tensors in self.folder.list_names():
            self._remove([other.head, other.tensors])

    def read(self, round: int) -> Restored:
        """Return the checkpoint of a round. One of `DAMAGE` if it is not whole."""
        chain = chain_of(self.list_places(), round)
        if not chain:
            raise RunError(f"{self.folder.path} has no base for the checkpoint of round {round}")
        reader = ChainReader()
        for place in chain:
            reader.add(self.load(place))
        state = reader.assemble()
        reader.require_state(digest_state(state))
        return Restored(reader.head, state)

    def find_head(self, round: int) -> Head | None:
        """Return the head of the checkpoint of a round; None where it has none."""
        for place in self.list_places():
            if place.round == round:
                return read_head(self.folder, place)[0]
        return None

    def load(self, place: Place) -> Loaded:
        """Return the files of a checkpoint. One of `DAMAGE` if one is not whole."""
        head, digest = read_head(self.folder, place)
        with self.folder.open_file(place.tensors, head.bytes) as file:
            reader, fault, tensors = TensorReader(file), None, {}
            try:
                tensors = reader.read_all()
            except DAMAGE as error:
                fault = error
                reader.pass_over_rest()
        if reader.digest != head.sha256:
            raise RunError(f"{place.tensors} is not what was written (its sha256 differs)")
        if fault is not None:
            raise fault
        return Loaded(head, digest, tensors)

    def read_rows(self, place: Place) -> list[int]:
        """Return the parties whose rows a checkpoint of changed rows has."""
        rows: list[int] = self.load(place).tensors[ROWS].tolist()
        return rows

    def keep(self, keep: str) -> None:
        """Remove all checkpoints but those that stay, and tensors that never got their head."""
        names = self.folder.list_names()
        places = self._choose_places(names)
        kept = {name for place in choose_kept(places, keep) for name in (place.head, place.tensors)}
        self._remove(name for name in list_own_names(names) if name not in kept)

    def drop_after(self, round: int) -> None:
        """Remove the checkpoints of later rounds."""
        later = [place for place in find_places(self.folder.list_names()) if place.round > round]
        self._remove(name for place in later for name in (place.head, place.tensors))
        if later:
            # Before the metrics go: a checkpoint without those of its rounds cannot be resumed.
            self.folder.sync()

    def clean(self) -> None:
        """Remove the temporary files that a killed run left."""
        names = self.folder.list_names()
        ours = [name for name in names if list_own_names([name_of_temporary(name)])]
        self.folder.remove(ours)

    def _remove(self, names: Iterable[str]) -> None:
        """Remove files, those of the newest first and heads before tensors.

        So a run that is killed in between leaves no head without what it needs.
        """
        there = set(self.folder.list_names())
        self.folder.remove(sorted(there.intersection(names), key=order_of_removal))


class ChainReader:
    """Puts a state together, of a base and the changed rows behind it."""

    def __init__(self) -> None:
        self._head: Head | None = None  # of the last checkpoint, whose digest follows
        self._digest = ""
        self._tensors: dict[str, Tensor] = {}

    def add(self, loaded: Loaded) -> list[int] | None:
        """Take the next checkpoint, and return the parties whose rows it changes; None for a base.

        One of `DAMAGE` where it does not stand on the one before.
        """
        head = loaded.head
        rows = None
        if head.place.is_base:
            self._tensors = loaded.tensors
        elif self._head is None or head.before != self._digest:
            raise RunError(f"{head.place.head} stands on another checkpoint than the one before it")
        else:
            rows = loaded.tensors[ROWS].tolist()
            _write_rows(self._tensors, loaded.tensors)
        self._head, self._digest = head, loaded.digest
        return rows

    @property
    def head(self) -> Head:
        """The head of the last checkpoint."""
        assert self._head is not None
        return self._head

    def assemble(self) -> State:
        """Return the state after the last checkpoint.

        Tensors come in no order. That of the names is part of the state: sums over leaves follow
        it.
        """
        head = self.head
        _require_tree([*head.names, *head.empty], head.place.head)
        in_order = {name: self._tensors[name] for name in head.names}
        parts = tree.unflatten(in_order, head.empty)
        if set(parts) != {part.name for part in fields(State)}:
            raise RunError(f"{head.place.head} is not of a state: it has {', '.join(parts)}")
        return State(**parts)

    def require_state(self, digest: str) -> None:
        """Raise RunError where the last checkpoint states another digest of its state."""
        if self.head.state and self.head.state != digest:
            raise RunError(f"{self.head.place.head} is of another state than its tensors")


def _digest_blocks(blocks: Iterable[Block], digest: "hashlib._Hash") -> Iterator[Block]:
    """Yield blocks, and add them to a digest."""
    for block in blocks:
        digest.update(block)
        yield block


def _write_rows(tensors: dict[str, Tensor], changed: dict[str, Tensor]) -> None:
    """Bring tensors up to date by those of a later checkpoint."""
    for name, leaf in changed.items():
        if name.startswith(PARTIES):
            tensors[name][changed[ROWS]] = leaf
        elif name != ROWS:
            tensors[name] = leaf


def _require_tree(paths: Sequence[str], file: str) -> None:
    """Raise RunError where paths are not those of a tree: one twice, or one that leads on."""
    inner = set()
    for path in paths:
        while "/" in path:
            path = path.rpartition("/")[0]
            inner.add(path)
    has_twice = len(set(paths)) < len(paths)
    if has_twice or inner.intersection(paths):
        raise RunError(f"{file} names tensors that stand in no one tree")
