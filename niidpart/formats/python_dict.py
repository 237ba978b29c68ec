"""Rows by party as python prints a dictionary of lists or sets, the way FedACG and FedRCL do."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..arithmetic.rng import Ints
from ..data import Data
from ..data.readers.budget import Budget
from ..data.readers.files import open_packed, read_whole
from ..errors import FileFault
from . import Format, Imported
from ._party_rows import PartyList, gather
from ._recognition import begins_as

__all__ = ["read"]

# A party, and how its rows begin.
_PARTY = re.compile(rb"""\s*(?:(\d{1,8})|'([^'\\]*)'|"([^"\\]*)")\s*:\s*(set\(\)|[\[{(])""")
_ROWS = re.compile(rb"\s*(?:\d{1,15}(?:\s*,\s*\d{1,15})*+\s*,?\s*)?")
_CLOSING = {b"[": b"]", b"{": b"}", b"(": b")"}
_NEXT = re.compile(rb"\s*(?:,\s*(\})?|(\}))")
_BYTES = 24  # of a row, for each comma


def read(folder: Path, data: Data | None) -> Imported:
    """A text with a python dictionary, {party: [rows]} or {party: {rows}}, as FedACG and FedRCL
    publish theirs; plain or packed. It is parsed, never run.

    Parties are whole numbers from 0, or names in quotes; rows are those of the data set, from 0.

    Parameters
    ----------
    folder : Path
        The file.
    data : Data or None
        The data set whose rows the file names.

    Returns
    -------
    Imported

    Raises
    ------
    FileFault
        The file holds anything else.
    """
    budget = Budget.of_files([folder])
    with open_packed(folder) as file:
        text = bytes(read_whole(file, budget.room))
    budget.require(len(text) + _BYTES * text.count(b","), "its dictionary")
    held: dict[Any, Ints] = {}
    place = _skip_opening(folder, text)
    while place >= 0:
        place = _read_party(folder, text, place, held)
    parties = PartyList(list(held), [{"train": rows} for rows in held.values()])
    return gather(folder, parties, data)


def _skip_opening(path: Path, text: bytes) -> int:
    opening = re.match(rb"\s*\{", text)
    if opening is None:
        raise _build_fault(path, text, 0, "'{'")
    return opening.end()


def _read_party(path: Path, text: bytes, place: int, held: dict[Any, Ints]) -> int:
    """Add the party that stands at a place; return where the next one does, -1 behind the last."""
    head = _PARTY.match(text, place)
    if head is None:
        raise _build_fault(path, text, place, "a party, a colon and a list or set of rows")
    number, single, double, opening = head.groups()
    place = head.end()
    rows: Ints = np.zeros(0, np.int64)
    if opening in _CLOSING:
        body = _ROWS.match(text, place)
        assert body is not None  # it matches nothing, too
        place = body.end()
        if text[place : place + 1] != _CLOSING[opening]:
            raise _build_fault(path, text, place, "a row, a whole number from 0,")
        place += 1
        rows = _parse_rows(body.group())
    party = _name_party(number, single, double)
    if party in held:
        raise FileFault(f"{path} has the party {ascii(party)[:40]} twice; python keeps the last")
    held[party] = rows
    after = _NEXT.match(text, place)
    if after is None:
        raise _build_fault(path, text, place, "a comma or '}'")
    if not any(after.groups()):
        return after.end()
    rest = text[after.end() :].strip()
    if rest:
        raise _build_fault(path, text, after.end(), "the end")
    return -1


def _parse_rows(body: bytes) -> Ints:
    stripped = body.strip().rstrip(b",")
    if not stripped:
        return np.zeros(0, np.int64)
    return np.fromstring(stripped.decode(), np.int64, sep=",")


def _name_party(number: bytes | None, single: bytes | None, double: bytes | None) -> Any:
    if number is not None:
        return int(number)
    name = single if single is not None else double
    assert name is not None  # the pattern has one of the three
    return name.decode("utf-8", "replace")


def _build_fault(path: Path, text: bytes, place: int, needed: str) -> FileFault:
    got = ascii(text[place : place + 40].decode("latin1"))
    if not text[place:].strip():
        return FileFault(
            f"{path} ends at byte {place}, where {needed} is needed: it was cut off; get it anew"
        )
    return FileFault(
        f"{path}: {got} stands at byte {place}, where {needed} is needed; such a file is one "
        "python dictionary, {party: [rows], ...}"
    )


def recognise(path: Path) -> str:
    """Return what the file is, "" where it is no such dictionary."""
    if begins_as(path, rb"\{\s*(\d+|'[^']*')\s*:\s*(\[|\{|\(|set\()"):
        return "a python dictionary of rows by party (as FedACG and FedRCL publish)"
    return ""


ENTRY = Format(read=read, read_needs_data=True, recognise=recognise)
