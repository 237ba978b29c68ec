"""Opens a split file that nobody vouches for: refuses what a split never is before a value of it is touched (rules 1 to 19 of docs/format.md).

`manifest.py` and `layout.py` go on with what the file says it holds, `check.py` with what that means.
"""

import contextlib
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import h5py
import numpy as np

from ..splits.recipe import NAME
from .chunks import DEFLATE, FLETCHER32, SHUFFLE, H5Array
from .faults import DAMAGE, Refused, SplitError, first_line, refuse
from .layout import KNOWN
from .limits import (
    INFLATE,
    MAX_ATTRIBUTES,
    MAX_CHUNK,
    MAX_CHUNKS,
    MAX_DEPTH,
    MAX_FILE,
    MAX_HEADER,
    MAX_MEMORY,
    MAX_OBJECTS,
    MAX_TEXT,
    SLACK,
)
from .stored import Content

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_SYMBOL_TABLE = 17  # the kind of message that an old group has: its heap can lead the library around in circles that take all memory
_NUMBERS = [
    np.dtype(f"<{kind}{size}")
    for kind in "iuf"
    for size in (1, 2, 4, 8)
    if (kind, size) != ("f", 1)
]


@contextlib.contextmanager
def open_here(path: str | Path) -> Iterator[Content]:
    """The arrays of a split file by their path, none of them read. What is raised as `Refused` inside leaves as SplitError, with the path.

    FileNotFoundError where there is no file; SplitError with the rule that it breaks.
    """
    with as_split_error(path) as there:
        require_plausible(there)
        try:
            file = h5py.File(there, "r")
        except DAMAGE as error:
            _damaged(error)
        with contextlib.closing(file):
            try:
                arrays = _arrays(file)
            except DAMAGE as error:
                _damaged(error)
            yield Content(arrays, own=os.stat(there).st_uid == os.geteuid())


@contextlib.contextmanager
def as_split_error(path: str | Path) -> Iterator[Path]:
    """Raises what is refused inside as SplitError, with the path."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"there is no file {path}; a split is made by niidpart make --strategy dir -o {path.name}"
        )
    try:
        yield path
    except Refused as refused:
        raise SplitError(path, [refused.fault]) from refused.__cause__


def _damaged(error: Exception) -> NoReturn:
    raise Refused(
        4, f"HDF5 cannot read it ({first_line(error)}); the file is damaged: fetch or make it again"
    ) from error


def require_plausible(path: Path) -> None:
    """Rules 1 to 3. The C library has had memory faults in its parser, so what is plainly no split never reaches it."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        refuse(1, "it is not a regular file")
    if status.st_size > MAX_FILE:
        refuse(2, f"it has {status.st_size} bytes, more than {MAX_FILE}")
    with open(path, "rb") as f:
        start = f.read(len(SIGNATURE))
    if start != SIGNATURE:
        refuse(3, f"it does not begin as HDF5 does (but with {start.hex() or 'nothing'})")


def _arrays(file: h5py.File) -> dict[str, H5Array]:
    """The data sets that a split has, by path, after rules 8 to 19 on everything in the file."""
    arrays, declared, chunks = {}, 0, 0
    for path, item in _data_sets(file):
        size, pieces, dtype = _structure(path, item)
        declared, chunks = declared + size, chunks + pieces
        if declared > MAX_MEMORY:
            refuse(17, f"the data sets declare more than {MAX_MEMORY} bytes")
        if chunks > MAX_CHUNKS:
            refuse(19, f"the data sets have more than {MAX_CHUNKS} chunks")
        if KNOWN.match(path):
            arrays[path] = H5Array(path, item, dtype)
    return arrays


def _data_sets(file: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    """(path, data set) in the whole file, after rules 8 to 12. Walks by links, never by value: an external link opens another file."""
    root = file["/"]
    seen = {_object("", h5py.h5o.get_info(root.id))}
    _attributes("", root)
    stack = [("", root, 0)]
    while stack:
        base, group, depth = stack.pop()
        if depth >= MAX_DEPTH:
            refuse(11, f"groups nest deeper than {MAX_DEPTH} at /{base}")
        for path, name in _links(base, group):
            address = _object(path, h5py.h5o.get_info(group.id, name))
            if address in seen:
                refuse(10, f"/{path} is a second link to one object")
            seen.add(address)
            if len(seen) > MAX_OBJECTS:
                refuse(11, f"there are more than {MAX_OBJECTS} objects")
            item = group[name]
            _attributes(path, item)
            if isinstance(item, h5py.Group):
                stack.append((f"{path}/", item, depth + 1))
            elif isinstance(item, h5py.Dataset):
                yield path, item
            else:
                refuse(10, f"/{path} is neither a group nor a data set")


def _links(base: str, group: h5py.Group) -> list[tuple[str, bytes]]:
    """(path, name) of what is in a group. Rules 10 to 12 on links and names."""
    links: list[tuple[bytes, int]] = []

    def look(name: bytes, link: Any) -> bool:  # may not raise: h5py would lose the error
        links.append((name, link.type))
        return len(links) > MAX_OBJECTS  # ends the walk

    group.id.links.iterate(look, info=True)
    if len(links) > MAX_OBJECTS:
        refuse(11, f"there are more than {MAX_OBJECTS} objects")
    found = []
    for name, kind in links:
        text = name.decode("ascii", "backslashreplace")
        if not NAME.match(text) or text in (".", ".."):
            refuse(12, f"the name {text!r} in /{base} is not of letters, digits, '_', '.', '-'")
        if kind != h5py.h5l.TYPE_HARD:
            refuse(
                10,
                f"/{base}{text} is a soft, external or user-defined link; only hard links are allowed",
            )
        found.append((base + text, name))
    return found


def _object(path: str, info: Any) -> int:
    """Rules 8 and 9 on one object; its address."""
    if info.hdr.version != 2 or info.hdr.mesg.present >> _SYMBOL_TABLE & 1:
        refuse(
            8,
            f"/{path} is stored as the first HDF5 did, without checksums; it was not written by niidpart",
        )
    if info.hdr.space.total > MAX_HEADER:
        refuse(9, f"/{path} has a header of {info.hdr.space.total} bytes, more than {MAX_HEADER}")
    return int(info.addr)


def _attributes(path: str, item: h5py.Group | h5py.Dataset | h5py.Datatype) -> None:
    """Rule 9: they are counted and not read."""
    if (n := h5py.h5a.get_num_attrs(item.id)) > MAX_ATTRIBUTES:
        refuse(9, f"/{path} has {n} attributes, more than {MAX_ATTRIBUTES}")


def _structure(path: str, item: h5py.Dataset) -> tuple[int, int, np.dtype[Any]]:
    """Rules 13 to 17 and 19 on one data set: (declared bytes, number of chunks, type)."""
    plist = item.id.get_create_plist()
    if plist.get_layout() == h5py.h5d.VIRTUAL or plist.get_external_count():
        refuse(13, f"/{path} has its values in another file")
    if plist.get_layout() not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
        refuse(14, f"/{path} has an unknown layout")
    filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
    if filters != [code for code in (SHUFFLE, DEFLATE, FLETCHER32) if code in filters]:
        refuse(
            15,
            f"/{path} uses the filters {filters}; only shuffle, deflate and fletcher32 are allowed, each once and in this order",
        )
    dtype = _type(item.id.get_type())
    if dtype is None:
        refuse(16, f"/{path} is not of little-endian integers, floats or fixed-length strings")
    if item.id.get_space().get_simple_extent_type() != h5py.h5s.SIMPLE or len(item.shape) not in (
        1,
        2,
    ):
        refuse(16, f"/{path} has shape {item.shape}; one or two axes are needed")
    size = dtype.itemsize * math.prod(int(n) for n in item.shape)
    if size > item.id.get_storage_size() * INFLATE + SLACK or size > MAX_MEMORY:
        refuse(17, f"/{path} declares {size} bytes and stores {item.id.get_storage_size()}")
    if not item.chunks:
        return size, 0, dtype
    if any(c > max(n, 1) for c, n in zip(item.chunks, item.shape, strict=True)):
        refuse(17, f"/{path} has chunks {item.chunks}, larger than its shape {item.shape}")
    if dtype.itemsize * math.prod(item.chunks) > MAX_CHUNK:
        refuse(
            19,
            f"/{path} has chunks {item.chunks} of {dtype.itemsize * math.prod(item.chunks)} bytes, more than {MAX_CHUNK}",
        )
    return (
        size,
        math.prod(-(-int(n) // c) for c, n in zip(item.chunks, item.shape, strict=True)),
        dtype,
    )


def _type(kind: h5py.h5t.TypeID) -> np.dtype[Any] | None:
    """The numpy type of a number or a string of fixed length, None for any other."""
    if isinstance(kind, h5py.h5t.TypeStringID):
        return (
            None
            if kind.is_variable_str() or not 0 < kind.get_size() <= MAX_TEXT
            else np.dtype(f"S{kind.get_size()}")
        )
    if not isinstance(kind, h5py.h5t.TypeIntegerID | h5py.h5t.TypeFloatID):
        return None
    return next((dtype for dtype in _NUMBERS if kind.equal(h5py.h5t.py_create(dtype))), None)
