"""Reads the content of a split file that nobody vouches for: refuses what a split never is before a value of it is touched.

The rules have the numbers of docs/format.md. `check.py` goes on with what the content means.
"""

import json
import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import h5py
import numpy as np
from numpy.typing import NDArray

from .files import FileFault
from .recipe import JSON, NAME

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MAX_FILE = 4 << 30
MAX_MEMORY = 16 << 30  # declared size of all data sets together
MAX_OBJECTS, MAX_DEPTH, MAX_NESTING = 4096, 4, 8
_KNOWN = re.compile(r"(manifest|hint|(train|val|test)/(indptr|indices|counts)|(draws|parties)/[^/]+)\Z")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]')  # strings as a whole; possessive, so that no text takes more than one pass
_INFLATE = 1100  # deflate cannot do more than 1032 : 1


@dataclass(frozen=True)
class Fault:
    """A broken rule of docs/format.md."""

    rule: int
    message: str

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.message}"


class SplitError(FileFault):
    """A file that is no valid split. path: the file; faults: the broken rules, at least one."""

    def __init__(self, path: str | Path, faults: list[Fault]):
        self.path, self.faults = Path(path), faults
        lines = [str(f) for f in faults]
        super().__init__(f"{path} is no valid split file (docs/format.md): " + ("; ".join(lines) if len(lines) < 3 else "\n  " + "\n  ".join(lines)))


@dataclass(frozen=True)
class Content:
    """What a file says, not yet believed: the manifest, the hint, and the arrays by their path."""

    manifest: JSON
    hint: JSON
    arrays: dict[str, NDArray[Any]]


class _Refused(Exception):
    def __init__(self, rule: int, message: str):
        self.fault = Fault(rule, message)


def _refuse(rule: int, message: str) -> NoReturn:
    raise _Refused(rule, message)


def load(path: str | Path) -> Content:
    """The content of a split file. FileNotFoundError where there is none; SplitError with the rule that it breaks."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}; a split is made by niidpart make --strategy dir -o {path.name}")
    try:
        _before_the_library(path)
        try:
            with h5py.File(path, "r") as file:
                arrays = {name: _values(name, item) for name, item in _data_sets(file) if _KNOWN.match(name)}
        except (OSError, RuntimeError, KeyError, ValueError) as error:  # h5py's own, for damage in the file's structure
            _refuse(4, f"HDF5 cannot read it ({_first_line(error)}); the file is damaged: fetch or make it again")
        if "manifest" not in arrays:
            _refuse(20, "there is no data set /manifest; this HDF5 file is something else than a split")
        return Content(_json("manifest", arrays.pop("manifest")), _json("hint", arrays.pop("hint")) if "hint" in arrays else {}, arrays)
    except _Refused as refused:
        raise SplitError(path, [refused.fault]) from refused.__cause__


def _before_the_library(path: Path) -> None:
    """Rules 1 to 3. The C library has had memory faults in its parser, so what is plainly no split never reaches it."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        _refuse(1, "it is not a regular file")
    if status.st_size > MAX_FILE:
        _refuse(2, f"it has {status.st_size} bytes, more than {MAX_FILE}")
    with open(path, "rb") as f:
        start = f.read(len(SIGNATURE))
    if start != SIGNATURE:
        _refuse(3, f"it does not begin as HDF5 does (but with {start.hex() or 'nothing'})")


def _data_sets(file: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    """(path, data set) in the whole file, after rules 10 to 17 on each. Walks by links, never by value: an external link opens another file."""
    seen, declared = set(), 0
    stack = [("", file["/"], 0)]
    while stack:
        base, group, depth = stack.pop()
        if depth >= MAX_DEPTH:
            _refuse(11, f"groups nest deeper than {MAX_DEPTH} at /{base}")
        for name in group:
            path = f"{base}{name}"
            if not isinstance(name, str) or not NAME.match(name):  # h5py gives bytes where a name is no text
                _refuse(12, f"the name {name!r} in /{base} is not of letters, digits, '_', '.', '-'")
            if type(group.get(name, getlink=True)) is not h5py.HardLink:
                _refuse(10, f"/{path} is a soft, external or user-defined link; only hard links are allowed")
            item = group[name]
            address = h5py.h5o.get_info(item.id).addr
            if address in seen:
                _refuse(10, f"/{path} is a second link to one object")
            seen.add(address)
            if len(seen) > MAX_OBJECTS:
                _refuse(11, f"there are more than {MAX_OBJECTS} objects")
            if isinstance(item, h5py.Group):
                stack.append((f"{path}/", item, depth + 1))
            elif isinstance(item, h5py.Dataset):
                declared += _structure(path, item)
                if declared > MAX_MEMORY:
                    _refuse(17, f"the data sets declare more than {MAX_MEMORY} bytes")
                yield path, item
            else:
                _refuse(10, f"/{path} is neither a group nor a data set")


def _structure(path: str, item: h5py.Dataset) -> int:
    """Rules 13 to 17 on one data set; its declared size in bytes."""
    plist = item.id.get_create_plist()
    if plist.get_layout() == h5py.h5d.VIRTUAL or plist.get_external_count():
        _refuse(13, f"/{path} has its values in another file")
    if plist.get_layout() not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
        _refuse(14, f"/{path} has an unknown layout")
    allowed = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
    filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
    if not allowed.issuperset(filters) or len(set(filters)) < len(filters):
        _refuse(15, f"/{path} uses the filters {filters}; only deflate, shuffle and fletcher32 are allowed, each once")
    kind = item.id.get_type()
    number = isinstance(kind, h5py.h5t.TypeIntegerID | h5py.h5t.TypeFloatID) and kind.get_size() in (1, 2, 4, 8)
    if number and kind.get_size() > 1 and kind.get_order() != h5py.h5t.ORDER_LE:
        number = False
    text = isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str() and kind.get_size() <= 256
    if not (number or text):
        _refuse(16, f"/{path} is not of little-endian integers, floats or fixed-length strings")
    if item.id.get_space().get_simple_extent_type() != h5py.h5s.SIMPLE or len(item.shape) not in (1, 2):
        _refuse(16, f"/{path} has shape {item.shape}; one or two axes are needed")
    size = int(kind.get_size())
    for length in item.shape:
        size *= int(length)
    if size > item.id.get_storage_size() * _INFLATE + 65536 or size > MAX_MEMORY:
        _refuse(17, f"/{path} declares {size} bytes and stores {item.id.get_storage_size()}")
    if item.chunks and any(c > max(n, 1) for c, n in zip(item.chunks, item.shape, strict=True)):
        _refuse(17, f"/{path} has chunks {item.chunks}, larger than its shape {item.shape}")
    return size


def _values(path: str, item: h5py.Dataset) -> NDArray[Any]:
    try:
        values: NDArray[Any] = item[()]
    except (OSError, RuntimeError, ValueError) as error:
        raise _Refused(18, f"/{path} is damaged ({_first_line(error)}); fetch or make the file again") from error
    return values


def _json(name: str, raw: NDArray[Any]) -> JSON:
    """Rule 20: one JSON object in ASCII, no key twice, no NaN or infinity, nested at most 8 deep."""

    def pairs(items: list[tuple[str, Any]]) -> JSON:
        if len({k for k, _ in items}) < len(items):
            _refuse(20, f"/{name} has a key twice")
        return dict(items)

    def constant(text: str) -> NoReturn:
        _refuse(20, f"/{name} holds {text}")

    def number(text: str) -> float:
        if not math.isfinite(float(text)):
            _refuse(20, f"/{name} holds {text}, which is beyond a float")
        return float(text)

    try:
        if raw.dtype != np.uint8 or raw.ndim != 1:
            _refuse(20, f"/{name} is not a row of bytes")
        text = raw.tobytes().decode("ascii")
        deepest = depth = 0
        for bracket in _BRACKETS.findall(text):
            depth += (bracket in "[{") - (bracket in "]}")
            deepest = max(deepest, depth)
        if deepest > MAX_NESTING:
            _refuse(20, f"/{name} nests {deepest} deep, more than {MAX_NESTING}")
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=number)
    except ValueError as error:
        raise _Refused(20, f"/{name} is no JSON ({error})") from error
    if not isinstance(value, dict):
        _refuse(20, f"/{name} is no JSON object")
    return value


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
