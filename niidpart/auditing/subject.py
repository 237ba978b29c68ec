"""What is audited: who holds which rows, as a file has it, and what is known of these rows."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..arithmetic.rng import Ints
from ..data import Data
from ..data.loading import find_shared_name
from ..data.readers.budget import Budget
from ..errors import FileFault
from ..formats import Imported
from ..interop.import_checks import find_stated_faults
from ..interop.importing import IMPORTERS, read_folder
from ..interop.recognition import recognise
from ..splits.split import FederatedSplit
from ..splits.view import RowIds
from ..strategies import STRATEGIES
from ..wording import count_noun

_SPLIT_FILE = b"\x89HDF\r\n\x1a\n"
_BYTES_OF_ROW = 4  # that stand for a row on the disk
_BYTES_OF_CLASS = 64  # of its name
_A_FEW_CLASSES = 1 << 10  # beyond the rows: more are numbers of something else
_PIECE = 1 << 18  # rows that are looked at at once: temporaries stay small


class AuditSubject(NamedTuple):
    """What is audited.

    described: what it is, in words. n: rows of the data set, None where nobody says. labels: class
    of each row of the data set [N], None where it is not at hand. counts: [P, K] examples of each
    class at each party over all parts, None where no class is known. class_names: [K] or ().
    data: the data set, None where it is not at hand. data_name: its name, "" of one that lies in
    somebody's own files. names_data: whether the file itself says of which data it is, or holds
    that. stated_source: what it says. says_classes: whether it says the class of each row.
    may_share: whether parties share rows by their recipe. has_recipe: whether a strategy of
    niidpart made it. stated_wrong: {part: pairs that the file says another class of than the data
    has}.
    """

    name: str
    described: str
    n_parties: int
    parts: Mapping[str, tuple[Ints, RowIds]]
    n: int | None
    counts: Ints | None
    class_names: tuple[str, ...]
    data: Data | None
    data_name: str = ""
    names_data: bool = False
    stated_source: Mapping[str, Any] = {}
    says_classes: bool = False
    may_share: bool = False
    has_recipe: bool = False
    stated_wrong: Mapping[str, int] = {}

    @property
    def sizes(self) -> Ints:
        """[P] rows of each party, over all parts."""
        sizes = np.zeros(self.n_parties, np.int64)
        for party, _ in self.parts.values():
            sizes += np.bincount(party, minlength=self.n_parties)
        return sizes

    @property
    def n_rows(self) -> int:
        """Pairs of a party and a row, over all parts."""
        return sum(len(row) for _, row in self.parts.values())


def describe_split(name: str, split: FederatedSplit, data: Data | None) -> AuditSubject:
    """Return a split as what is audited."""
    counts = np.zeros((split.n_parties, len(split.source.class_names)), np.int64)
    parts: dict[str, tuple[Ints, RowIds]] = {}
    for part_name, part in split.parts.items():
        if part.n:
            party = np.repeat(np.arange(split.n_parties), part.sizes)
            parts[part_name] = (party, part.indices)  # of four bytes where that is enough
            counts += part.counts
    has_recipe = split.recipe.strategy in STRATEGIES.names()
    return AuditSubject(
        name=name,
        described=f"a split file of niidpart ({split.recipe.strategy})",
        n_parties=split.n_parties,
        parts=parts,
        n=split.source.n,
        counts=counts,
        class_names=split.source.class_names,
        data=data,
        data_name=find_shared_name(split.source.name),
        names_data=True,
        may_share=has_recipe,
        has_recipe=has_recipe,
    )


def read_published(
    path: Path, format: str | None, data: Data | None, options: Mapping[str, Any]
) -> AuditSubject:
    """Return what a file or folder of another program holds as what is audited."""
    described = f"format {format}"
    if format is None:
        found = recognise(path)
        format, described = found.format, found.description
    return describe_held(path, format, described, read_folder(path, format, data, options))


def describe_held(path: Path, format: str, described: str, held: Imported) -> AuditSubject:
    """Return what a format has read in a file or folder as what is audited."""
    whole = held.data
    counts, class_names = _count(path, held, whole)
    source = held.about.get("source", {})
    return AuditSubject(
        name=str(path),
        described=described,
        n_parties=max(held.n_parties, 1),
        parts=held.parts,
        n=None if whole is None else len(whole.labels),
        counts=counts,
        class_names=class_names,
        data=whole,
        data_name="" if whole is None else find_shared_name(whole.name),
        names_data=not IMPORTERS.record(format).read_needs_data or bool(source),
        stated_source=source,
        says_classes=_says_classes(held),
        stated_wrong={} if whole is None else find_stated_faults(held, whole),
    )


def is_split_file(path: Path) -> bool:
    """Return whether a file begins as a split file does."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_SPLIT_FILE)) == _SPLIT_FILE


def _says_classes(held: Imported) -> bool:
    """Return whether a file says the class of each row that it names."""
    return bool(held.labels) and set(held.labels) == set(held.parts)


def _count(name: Path, held: Imported, data: Data | None) -> tuple[Ints | None, tuple[str, ...]]:
    """Return [P, K] counts by the data's labels, else by what the file says, and the classes."""
    if data is not None:
        names = data.class_names
        K = len(names)
    elif _says_classes(held):
        K = _count_stated_classes(name, held)
    else:
        return None, ()
    shape = (max(held.n_parties, 1), K)
    n_rows = sum(len(row) for _, row in held.parts.values())
    needed = 8 * math.prod(shape) + _BYTES_OF_CLASS * K
    Budget(name, _BYTES_OF_ROW * n_rows).require(needed, "counts of its parties")
    if data is None:
        names = tuple(map(str, range(K)))
    counts = np.zeros(shape[0] * shape[1], np.int64)
    for part, (party, row) in held.parts.items():
        for start in range(0, len(row), _PIECE):
            some = slice(start, start + _PIECE)
            if data is None:
                cells = party[some] * shape[1] + held.labels[part][some]
            else:
                cells = _find_cells(party[some], row[some], data)
            counts += np.bincount(cells, minlength=len(counts))
    return counts.reshape(shape), names


def _count_stated_classes(name: Path, held: Imported) -> int:
    """Return K, where a file says classes 0..K-1 of its rows. FileFault for one below 0."""
    lowest = min(int(label.min(initial=0)) for label in held.labels.values())
    if lowest < 0:
        raise FileFault(f"{name} says the class {lowest} of a row; whole numbers from 0 are needed")
    highest = max(int(label.max(initial=0)) for label in held.labels.values())
    n_rows = sum(map(len, held.labels.values()))
    if highest > n_rows + _A_FEW_CLASSES:
        raise FileFault(
            f"{name} says the class {highest} of a row, and has {count_noun(n_rows, 'row')}; "
            "classes are numbered from 0"
        )
    return 1 + highest


def _find_cells(party: Ints, row: Ints, data: Data) -> Ints:
    """Return the cells of a table [P, K] that pairs are counted in, without rows of other data."""
    is_there = (row >= 0) & (row < len(data.labels))
    if not is_there.all():
        party, row = party[is_there], row[is_there]
    return party * len(data.class_names) + data.labels[row]
