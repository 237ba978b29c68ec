"""Rows by party as comma-separated text: the plainest form, and one that loses nothing."""

import csv as text
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..errors import FileFault, UsageError
from ..splits.part import PARTS
from ..splits.recipe import NAME
from ..splits.split import FederatedSplit
from . import LOSABLE, Imported
from ._shared import ABOUT, about, read_about

__all__ = ["csv"]

HOLDS = frozenset(LOSABLE) - {"recipe"}
ROWS, PARTIES = "rows.csv", "parties.csv"
NAMES = "party_name"  # the column of the names that parties came in with
_BLOCK = 1 << 16  # lines that are made at a time
_MOST_PARTIES = 1 << 24
_WIDEST = 256  # bytes of a value, as in a split file


def csv(split: FederatedSplit, data: Data | None) -> Iterator[tuple[str, bytes]]:
    """rows.csv (part, party, row), parties.csv (sizes, columns), niidpart.json (recipe, source, digest). Loses no row, no digit.

    Lines of rows.csv stand in the order train, val, test, in each by party and row. Floats are written so that they come back as they are.
    """
    yield ROWS, rows_table(split)
    yield PARTIES, parties_table(split)
    yield ABOUT, about(split)


def rows_table(split: FederatedSplit) -> bytes:
    """part,party,row of every row that is held."""
    out = io.StringIO()
    out.write("part,party,row\n")
    for name, part in split.parts.items():
        party = np.repeat(np.arange(part.n_parties), part.sizes)
        for start in range(0, part.n, _BLOCK):
            some = slice(start, start + _BLOCK)
            out.writelines(
                f"{name},{p},{row}\n"
                for p, row in zip(party[some].tolist(), part.indices[some].tolist(), strict=True)
            )
    return out.getvalue().encode()


def parties_table(split: FederatedSplit) -> bytes:
    """party, the sizes of its parts, and its columns."""
    out = io.StringIO()
    names = sorted(split.columns)
    write = text.writer(out, lineterminator="\n").writerow
    write(["party", *PARTS, *names])
    columns = [split.columns[name] for name in names]
    cells = [
        [value.decode() if isinstance(value, bytes) else repr(value) for value in column.tolist()]
        for column in columns
    ]
    sizes = [split.parts[name].sizes.tolist() for name in PARTS]
    for p in range(split.n_parties):
        write([p, *(of[p] for of in sizes), *(column[p] for column in cells)])
    return out.getvalue().encode()


def read(
    folder: Path,
    data: Data,
    *,
    party_column: Annotated[
        str, "Column of the parties: whole numbers from 0, or names."
    ] = "party",
    row_column: Annotated[
        str,
        "Column of rows of the data set, from 0; a file without it has a line for each example, in order.",
    ] = "row",
    part_column: Annotated[
        str, "Column that says train, val or test; without it all is train."
    ] = "part",
) -> Imported:
    """A folder with rows.csv as csv writes it, or any CSV file with a header and a column of parties.

    party_column: whole numbers from 0, or names, which are numbered in sorted order and kept as the party column `party_name`. row_column: rows of
    the data set from 0; a file without that column has one line for each example, in order, and an empty party says that nobody holds it.
    part_column: train, val or test; without it all is train.
    """
    path = folder / ROWS if folder.is_dir() else folder
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no file {path}; a folder with {ROWS}, or a CSV file with a header, is needed"
        )
    said = read_about(path.parent) if folder.is_dir() else {}
    header, lines = _lines(path)
    if party_column not in header:
        raise UsageError(
            f"{path} has no column {party_column!r}; say --party-column with one of {', '.join(header[:20])}"
        )
    column = {
        name: [line[i] for line in lines]
        for i, name in enumerate(header)
        if name in (party_column, row_column, part_column)
    }
    owners = column[party_column]
    if row_column in column:
        row = _numbers(path, row_column, column[row_column])
    else:
        row = np.arange(len(owners))
        if len(owners) != len(data.labels):
            raise FileFault(
                f"{path} has {len(owners)} lines and no column {row_column!r}; the data set has {len(data.labels)} examples"
            )
    held = np.array([owner != "" for owner in owners], bool)
    party = np.full(len(owners), -1, np.int64)
    party[held], names = _parties(path, party_column, [owner for owner in owners if owner != ""])
    part = np.array(column.get(part_column, ["train"] * len(owners)))
    if strange := sorted(set(part.tolist()) - set(PARTS)):
        raise FileFault(
            f"{path}: the column {part_column!r} says {strange[0][:40]!r}; {', '.join(PARTS)} are possible"
        )
    parts = {
        name: (party[here], row[here]) for name in PARTS if (here := held & (part == name)).any()
    }
    n_parties, columns = _columns(path.parent, said) if folder.is_dir() else (0, {})
    n_parties = n_parties or int(party.max(initial=-1)) + 1
    if len(names) and (
        len(names) != n_parties or columns.setdefault(NAMES, names).tolist() != names.tolist()
    ):
        raise FileFault(
            f"{path} names {len(names)} parties, and {PARTIES} beside it speaks of {n_parties}, or of other names; remove that file"
        )
    return Imported(data, n_parties, parts, columns, said)


def _lines(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the lines of a CSV file."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as f:
            header, *lines = [line for line in text.reader(_without_nul(f)) if line] or [[]]
    except (text.Error, UnicodeDecodeError) as error:
        raise FileFault(f"{path} is no CSV file ({error})") from error
    if not lines:
        raise FileFault(f"{path} has no lines below its header")
    [(name, times)] = Counter(header).most_common(1)
    if times > 1:
        raise FileFault(
            f"{path}: its header has the column {name[:40]!r} twice; give each column a name of its own"
        )
    wrong = next((i for i, line in enumerate(lines) if len(line) != len(header)), None)
    if wrong is not None:
        raise FileFault(
            f"{path}: line {wrong + 2} has {len(lines[wrong])} values, the header has {len(header)}"
        )
    return header, lines


def _without_nul(lines: Iterable[str]) -> Iterator[str]:
    for i, line in enumerate(lines):
        if "\0" in line:
            raise text.Error(f"line {i + 1} holds a NUL byte")
        yield line


def _numbers(path: Path, name: str, texts: list[str]) -> Ints:
    strange = next((t for t in texts if not (t.isascii() and t.isdigit() and len(t) <= 15)), None)
    if strange is not None:
        raise FileFault(
            f"{path}: the column {name!r} holds {strange[:40]!r}; whole numbers from 0 are needed"
        )
    return np.array(list(map(int, texts)), np.int64)


def _parties(path: Path, name: str, texts: list[str]) -> tuple[Ints, NDArray[np.bytes_]]:
    """(numbers as they are, no names), or (names by their place in sorted order, these names)."""
    distinct = sorted(set(texts))
    if all(t.isascii() and t.isdigit() for t in distinct):
        party = _numbers(path, name, texts)
        written: dict[int, str] = {}
        for t in distinct:
            if (other := written.setdefault(int(t), t)) != t:
                raise FileFault(
                    f"{path}: the column {name!r} has {other!r} and {t!r}, which are one number; write each party in one way, or with a letter"
                )
        if party.max(initial=0) >= _MOST_PARTIES:
            raise FileFault(
                f"{path}: the column {name!r} has party {party.max()}; there can be {_MOST_PARTIES:,}"
            )
        return party, np.zeros(0, "S1")
    names = [owner.encode() for owner in distinct]
    if long := [
        owner for owner, name_ in zip(distinct, names, strict=True) if len(name_) > _WIDEST
    ]:
        raise FileFault(
            f"{path}: the party {long[0][:40]!r}... has a name of more than {_WIDEST} bytes; a shorter one is needed"
        )
    place = {owner: p for p, owner in enumerate(distinct)}
    return np.array([place[owner] for owner in texts], np.int64), np.array(names)


def _columns(folder: Path, said: Any) -> tuple[int, dict[str, NDArray[Any]]]:
    """(number of parties, columns) of parties.csv; (0, {}) where there is none."""
    path = folder / PARTIES
    if not path.is_file():
        if said:
            raise FileFault(
                f"{path} is missing, of which {ABOUT} speaks; get the folder anew, or remove {ABOUT} to import the rows as they are"
            )
        return 0, {}
    header, lines = _lines(path)
    if header[:1] != ["party"] or [line[0] for line in lines] != [
        str(p) for p in range(len(lines))
    ]:
        raise FileFault(f"{path} does not begin with a column 'party' of 0, 1, 2, ...")
    kinds = said.get("columns", {})
    columns = {}
    for i, name in enumerate(header):
        if name in ("party", *PARTS):
            continue
        if not NAME.match(name):
            raise FileFault(
                f"{path}: a column is called {name[:40]!r}; letters, digits, '_', '.' and '-' are allowed"
            )
        columns[name] = _values(path, name, [line[i] for line in lines], kinds.get(name))
    return len(lines), columns


def _values(path: Path, name: str, texts: list[str], kind: Any) -> NDArray[Any]:
    """Values in the type that niidpart.json states; else whole numbers, real numbers, or text, whichever they can be."""
    try:
        if kind is not None:
            dtype = np.dtype(str(kind))
            if dtype.kind not in "iufS" or dtype.itemsize > _WIDEST:
                raise TypeError(f"{ABOUT} says that it is of type {str(kind)[:40]!r}")
            if dtype.kind == "S":
                return np.array([t.encode() for t in texts], dtype)
            return np.array([(int if dtype.kind in "iu" else float)(t) for t in texts], dtype)
        for parse, wide in ((int, np.int64), (float, np.float64)):
            try:
                return np.array([parse(t) for t in texts], wide)
            except (ValueError, OverflowError):
                continue
        return np.array([t.encode() for t in texts])
    except (ValueError, TypeError, OverflowError) as error:
        raise FileFault(
            f"{path}: the column {name!r} cannot be read ({str(error)[:100]})"
        ) from error
