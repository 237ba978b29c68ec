"""A split: who holds which example, in compressed rows, and the digest that names it."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import tally
from ..arithmetic.rng import Ints
from .recipe import Recipe, Source, canonical, sha256

if TYPE_CHECKING:
    from ..heterogeneity import Skew

FORMAT_MAJOR = 1
PARTS = ("train", "val", "test")
_BLOCK = 1 << 18  # rows looked at at a time
RowIds = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """The examples of each party in one part (train, val or test).

    indptr: [P+1] int64. indices: [n] int32 or int64 rows of the data set, those of party p at indptr[p]:indptr[p+1], ascending.
    counts: [P, K] int32 examples of class k at party p. All are read-only.
    """

    indptr: Ints
    indices: RowIds
    counts: NDArray[np.int32]

    def __post_init__(self) -> None:
        for array in (self.indptr, self.indices, self.counts):
            array.setflags(write=False)

    def party(self, p: int) -> RowIds:
        """The rows of party p, ascending; a view. IndexError where there is no such party."""
        if not 0 <= p < self.n_parties:
            raise IndexError(f"party {p} does not exist; the parties are 0..{self.n_parties - 1}")
        return self.indices[self.indptr[p] : self.indptr[p + 1]]

    def __iter__(self) -> Iterator[RowIds]:
        return (self.party(p) for p in range(self.n_parties))

    @property
    def n(self) -> int:
        """Examples in this part, over all parties."""
        return len(self.indices)

    @property
    def n_parties(self) -> int:
        return len(self.indptr) - 1

    @property
    def sizes(self) -> Ints:
        """[P] int64 examples of each party."""
        return np.diff(self.indptr)

    @cached_property
    def digest(self) -> str:
        """sha256 over indptr then indices, as little-endian int64."""
        h = hashlib.sha256(self.indptr.astype("<i8").tobytes())
        for start in range(0, len(self.indices), _BLOCK):
            h.update(self.indices[start : start + _BLOCK].astype("<i8").tobytes())
        return h.hexdigest()


def empty_part(n_parties: int, n_classes: int) -> Part:
    """The Part that holds nothing."""
    zeros = np.broadcast_to(np.int32(0), (n_parties, n_classes))  # takes no memory
    return Part(np.zeros(n_parties + 1, np.int64), np.zeros(0, np.int32), zeros)


def part(owner: NDArray[Any], labels: Ints, n_parties: int, n_classes: int) -> Part:
    """The Part in which each example belongs to `owner` [N] (-1: to nobody). Rows come out ascending, so equal splits have equal digests."""
    if owner.min() < 0:  # nobody's examples stand behind the last party
        owner = np.where(owner < 0, n_parties, owner)
    sizes = tally(owner, n_parties + 1)[:n_parties]
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if n_parties < 1 << 16:  # numpy's stable sort of 16 bits is a radix sort
        rows = np.argsort(owner.astype(np.uint16), kind="stable")
    else:  # owner and row in one word each: the words are unique, so every sorting routine gives the same order
        low = len(owner).bit_length()
        words = owner.astype(np.uint64)
        words <<= np.uint64(low)
        words |= np.arange(len(owner), dtype=np.uint64)
        words.sort()
        words &= np.uint64((1 << low) - 1)
        rows = words.view(np.int64)
    return _counted(indptr, rows[: indptr[-1]], labels, n_classes)


def part_of_rows(party: Ints, row: Ints, labels: Ints, n_parties: int, n_classes: int) -> Part:
    """The Part in which `party[i]` holds `row[i]`, for all i; two parties may hold one row."""
    order = np.lexsort((row, party))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(party, minlength=n_parties))]).astype(
        np.int64
    )
    return _counted(indptr, row[order], labels, n_classes)


def _counted(indptr: Ints, rows: Ints, labels: Ints, n_classes: int) -> Part:
    indices: RowIds = rows.astype(np.int32) if len(labels) < 1 << 31 else rows
    return Part(indptr, indices, count_classes(indptr, indices, labels, n_classes))


def count_classes(indptr: Ints, indices: RowIds, labels: Ints, n_classes: int) -> NDArray[np.int32]:
    """[P, K] int32 examples of each class at each party; `labels` [N] of the whole data set. Works on a block of rows at a time."""
    counts = np.zeros((len(indptr) - 1, n_classes), np.int32)
    for start in range(0, len(indices), _BLOCK):
        stop = min(start + _BLOCK, len(indices))
        first, last = (
            np.searchsorted(indptr, start, side="right") - 1,
            np.searchsorted(indptr, stop),
        )  # parties first..last-1
        ends = np.clip(indptr[first : last + 1], start, stop)
        sizes = ends[1:] - ends[:-1]
        cells = np.repeat(np.arange(last - first) * n_classes, sizes) + labels[indices[start:stop]]
        counts[first:last] += (
            np.bincount(cells, minlength=(last - first) * n_classes)
            .reshape(-1, n_classes)
            .astype(np.int32)
        )
    return counts


@dataclass(frozen=True, eq=False)
class FederatedSplit:
    """Who holds what, how it was drawn, and of which data. Made by `niidpart.make`, read by `niidpart.read`.

    draws: what the strategy drew, by name. columns: one value a party, by name (noise seed, noise level, ...).
    """

    recipe: Recipe
    source: Source
    train: Part
    val: Part
    test: Part
    draws: Mapping[str, NDArray[Any]]
    columns: Mapping[str, NDArray[Any]]
    root: str = (
        ""  # where the data was found on the disk of whoever made this: a hint, outside the digest
    )

    def __post_init__(self) -> None:
        for array in (*self.draws.values(), *self.columns.values()):
            array.setflags(write=False)

    @property
    def n_parties(self) -> int:
        return self.recipe.n_parties

    @property
    def parts(self) -> dict[str, Part]:
        return {name: getattr(self, name) for name in PARTS}

    @cached_property
    def n_held(self) -> int:
        """Examples of the data set that some party holds."""
        return holdings(self.parts.values(), self.source.n)[0]

    @property
    def n_unheld(self) -> int:
        """Examples of the data set that no party holds."""
        return self.source.n - self.n_held

    @property
    def overlaps(self) -> bool:
        """Whether two parties share an example."""
        return self.n_held < sum(part.n for part in self.parts.values())

    @cached_property
    def digest(self) -> str:
        """The split's name: sha256 of recipe, source, digest of each part, digest of each party column, major version of the format."""
        return split_digest(
            self.recipe, self.source, {k: v.digest for k, v in self.parts.items()}, self.columns
        )

    @cached_property
    def skew(self) -> "Skew":
        """How skewed the training part is: MAP beta and all measures, computed from its counts when first asked for."""
        from ..heterogeneity import measure

        return measure(self.train.counts)

    def __repr__(self) -> str:
        r = self.recipe
        return f"FederatedSplit({r.strategy} {r.params}, {r.n_parties} parties, {self.source.name} [{self.source.n}], {self.digest[:12]})"


def holdings(parts: Iterable[Part], n: int) -> tuple[int, int]:
    """(distinct examples in the parts, rows that an earlier part has as well), of a data set of n. Takes memory by the rows, not by n."""
    rows = [part.indices for part in parts]
    if (
        n > 8 * sum(map(len, rows)) + 65536
    ):  # few of many are held: count them by their place among those held
        kept = np.unique(np.concatenate(rows))
        rows, n = [np.searchsorted(kept, r) for r in rows], len(kept)
    held, across = np.zeros(n, bool), 0
    for r in rows:
        across += int(np.count_nonzero(held[r]))
        held[r] = True
    return int(np.count_nonzero(held)), across


def split_digest(
    recipe: Recipe, source: Source, parts: Mapping[str, str], columns: Mapping[str, NDArray[Any]]
) -> str:
    return sha256(
        canonical(
            {
                "recipe": recipe.to_json(),
                "source": source.to_json(),
                "parts": dict(parts),
                "columns": {name: array_digest(a) for name, a in columns.items()},
                "format": FORMAT_MAJOR,
            }
        )
    )


def array_digest(array: NDArray[Any]) -> str:
    """sha256 over type, shape and little-endian values of an array."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    h = hashlib.sha256(canonical([little.dtype.str.replace("|", "<"), list(little.shape)]))
    h.update(little.reshape(-1).view(np.uint8).data)
    return h.hexdigest()
