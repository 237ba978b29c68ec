"""The rules on the values of parts: 31 to 35 of docs/format.md."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..arithmetic.rng import Ints
from ..arithmetic.words import Array
from ..disk.progress import tell_many
from ..splits.holdings import count_holdings
from ..splits.part import Part, build_checked_part
from .faults import Fault, Refused, refuse
from .layout import KEYS
from .stored import StoredArray, copy_values, read_values


def read_part(
    name: str,
    arrays: Mapping[str, StoredArray],
    n: int,
    faults: list[Fault],
    folder: Path | None,
) -> Part | None:
    """Read one part and check rules 31 to 33; None, and the fault noted, where it breaks one.

    Works block by block, so that zeros that inflate well are refused at the first. folder: a
    scratch folder for the rows, None for memory.
    """
    indptr, indices, counts = (arrays[f"{name}/{key}"] for key in KEYS)
    try:
        bounds = read_values(indptr)
        require_rising(name, bounds, indices.shape[0])
        check = RowCheck(name, bounds, n)
        if folder is None:
            rows = read_values(indices, check)
        else:
            rows = copy_values(indices, check, folder / f"stored_{name}")
        sizes = np.diff(bounds)

        def look(start: int, block: Array) -> None:
            require_sums(name, block, sizes[start : start + len(block)])

        return build_checked_part(bounds, rows, read_values(counts, look))
    except Refused as refused:
        if refused.fault.rule not in (31, 32, 33):
            raise
        faults.append(refused.fault)
        return None


def require_rising(name: str, indptr: Ints, n_rows: int) -> None:
    """Refuse an indptr that breaks rule 31."""
    falls = (np.diff(indptr) < 0).any()
    if falls or indptr[0] != 0 or indptr[-1] != n_rows:
        refuse(31, f"/{name}/indptr does not rise from 0 to {n_rows}")


class RowCheck:
    """Checks rule 32 on blocks of indices, in their order, and tells how far they are.

    n: examples of the data set.
    """

    def __init__(self, name: str, indptr: Ints, n: int):
        self.name, self.indptr, self.n = name, indptr, n
        self.last = -1  # the index before the block

    def __call__(self, start: int, block: Array) -> None:
        low, high = block.min(), block.max()
        if low < 0 or high >= self.n:
            there = f"the data set has 0..{self.n - 1}"
            refuse(32, f"/{self.name}/indices has rows {low}..{high}; {there}")
        falls = np.flatnonzero(block[1:] <= block[:-1]) + start + 1
        if block[0] <= self.last:
            falls = np.append(start, falls)
        # A fall is allowed only where the next party begins.
        begins = self.indptr[np.searchsorted(self.indptr, falls)]
        if (begins != falls).any():
            refuse(32, f"/{self.name}/indices does not rise within each party")
        self.last = int(block[-1])
        tell_many(f"reading {self.name}", start + len(block), int(self.indptr[-1]))


def require_sums(name: str, counts: Array, sizes: Ints) -> None:
    """Refuse counts of some parties that break rule 33. sizes: of the same parties."""
    sums = counts.sum(axis=1, dtype=np.int64)
    if (counts < 0).any() or (sums != sizes).any():
        refuse(33, f"/{name}/counts does not add up to the sizes of the parties")


def check_shared_rows(parts: Mapping[str, Part], n: int, overlap: bool) -> list[Fault]:
    """Return the faults of rules 34 and 35. overlap: the manifest says that parties share rows."""
    distinct, across = count_holdings(parts.values(), n)
    twice = sum(part.n for part in parts.values()) - distinct
    if overlap and across:
        return [Fault(34, f"{across} examples are in two parts")]
    if twice and not overlap:
        return [Fault(34, f"{twice} examples are held twice")]
    if overlap and not twice:
        message = "the manifest requires overlap, and no two parties share an example"
        return [Fault(35, message)]
    return []
