"""Headers of the objects of an HDF5 file, read before the library opens what they describe.

Of headers whose checksums were made to fit HDF5 2.0 believes too much: it divides by the size of a
chunk along an axis that has none, follows the address of a tree that is not there, and takes the
process with it; it counts for ever in an array that says it grew without end.

The structure is that of "HDF5 File Format Specification", II.A (superblock),
IV.A.1.b (headers of version 2), IV.A.2.b (dataspace), IV.A.2.i (data layout).
"""

import os
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from .faults import refuse
from .limits import MAX_FILE, MAX_HEADER

_DATASPACE, _LAYOUT, _CONTINUATION, _SYMBOL_TABLE = 1, 8, 16, 17  # kinds of messages
_SHARED = 2  # the flag of a message that stands elsewhere
_CHUNKED = 2  # the class of a layout
_INDEXES = (1, 2, 3)  # of chunks: a single one, all in order, an array
_ADDRESS = 8  # bytes, as has a length
_CHECKSUM = 4
_SUPERBLOCK = 44  # bytes, of versions 2 and 3
_START = 34  # bytes of a header before its first message, at most


class _Message(NamedTuple):
    kind: int
    flags: int
    body: bytes


class _Prefix(NamedTuple):
    """What stands before the first message.

    size: its bytes. first_length: bytes of the first block of messages. with_order: whether each
    message has the number of its creation.
    """

    size: int
    first_length: int
    with_order: bool


class ObjectHeader(NamedTuple):
    """The messages of an object."""

    messages: list[_Message]

    @property
    def is_dataset(self) -> bool:
        return any(message.kind == _LAYOUT for message in self.messages)


def find_root(handle: int) -> int:
    """Return the address of the root's header, after rule 8 on the superblock."""
    block = os.pread(handle, _SUPERBLOCK, 0)
    version = block[8]
    if version < 2:
        refuse(8, f"its superblock is of version {version}; 2 and later have checksums")
    sizes = block[9], block[10]
    if sizes != (_ADDRESS, _ADDRESS):
        refuse(8, f"its addresses and lengths have {sizes} bytes; {_ADDRESS} each are needed")
    base = int.from_bytes(block[12:20], "little")
    if base:
        refuse(8, f"its addresses are counted from {base}; they are from 0")
    return int.from_bytes(block[36:44], "little")


def read_header(path: str, handle: int, address: int) -> ObjectHeader:
    """Return the header of an object, after rules 8, 9 and 14 on it."""
    header = ObjectHeader(list(_iterate_messages(path, handle, address)))
    if any(message.kind == _SYMBOL_TABLE for message in header.messages):
        _refuse_first_version(path)
    if header.is_dataset:
        _check_chunks(path, header)
    return header


def _refuse_first_version(path: str) -> NoReturn:
    # The heap of an old group can lead the library around in circles that take all memory.
    how = "as the first HDF5 did, without checksums"
    refuse(8, f"/{path} is stored {how}; it was not written by niidpart")


def _check_chunks(path: str, header: ObjectHeader) -> None:
    """Refuse a data set whose chunks do not have a size for each axis of its values (rule 14)."""
    ranks = []
    layouts = []
    for message in header.messages:
        if message.kind not in (_DATASPACE, _LAYOUT):
            continue
        if message.flags & _SHARED:
            refuse(14, f"/{path} shares what says its shape or layout with another object")
        _require_bytes(path, message.body, 2)
        if message.kind == _DATASPACE:
            ranks.append(message.body[1])
        else:
            layouts.append(message.body)
    for layout in layouts:
        sizes = _list_chunk_sizes(path, layout)
        if sizes is not None and ([len(sizes)] != ranks or 0 in sizes):
            axes = ", ".join(map(str, ranks)) or "none"
            refuse(14, f"/{path} has chunks of {len(sizes)} axes {sizes}; its values have {axes}")


def _list_chunk_sizes(path: str, layout: bytes) -> list[int] | None:
    """Return how many values a chunk has along each axis; None where there are no chunks."""
    version, kind = layout[0], layout[1]
    if version < 3:
        refuse(14, f"/{path} has a layout of version {version}; 3 and later are read")
    if kind != _CHUNKED:
        return None
    if version == 3:
        refuse(14, f"/{path} finds its chunks by a tree without checksums, as the first HDF5 did")
    _require_bytes(path, layout, 5)
    n, n_bytes, begin = layout[3], layout[4], 5
    _require_bytes(path, layout, begin + n * n_bytes + 1)
    index = layout[begin + n * n_bytes]
    if index not in _INDEXES:
        refuse(14, f"/{path} finds its chunks by an index of kind {index}; 1 to 3 are read")
    sizes = []
    for axis in range(n):
        at = begin + axis * n_bytes
        sizes.append(int.from_bytes(layout[at : at + n_bytes], "little"))
    return sizes[:-1]  # the last is the size of a value, in bytes


def _iterate_messages(path: str, handle: int, address: int) -> Iterator[_Message]:
    """Yield the messages of a header of version 2, block after block."""
    prefix = _read_prefix(path, handle, address)
    blocks = [(address + prefix.size, prefix.first_length)]
    size = prefix.size
    while blocks:
        begin, length = blocks.pop(0)
        size += length + _CHECKSUM
        if size > MAX_HEADER:
            refuse(9, f"/{path} has a header of {size} bytes or more; {MAX_HEADER} are allowed")
        block = _read(path, handle, length, begin)
        if len(block) < length:
            _refuse_damaged(path)
        for message in _iterate_block(path, block, with_order=prefix.with_order):
            if message.kind == _CONTINUATION:
                blocks.append(_find_block(message.body))
            else:
                yield message


def _read_prefix(path: str, handle: int, address: int) -> _Prefix:
    start = _read(path, handle, _START, address)
    if start[:1] == b"\x01":
        _refuse_first_version(path)
    if start[:5] != b"OHDR\x02":
        refuse(
            4, f"/{path} has no header at {address}; the file is damaged: fetch or make it again"
        )
    flags = start[5]
    n_before = 6
    if flags & 32:  # four times of day
        n_before += 16
    if flags & 16:  # from how many attributes on they are stored otherwise
        n_before += 4
    n_bytes = 1 << (flags & 3)
    length = int.from_bytes(start[n_before : n_before + n_bytes], "little")
    return _Prefix(n_before + n_bytes, length, with_order=bool(flags & 4))


def _read(path: str, handle: int, n: int, address: int) -> bytes:
    """Return up to n bytes of the file from there on."""
    if address + n > MAX_FILE + _START:
        _refuse_damaged(path)
    return os.pread(handle, n, address)


def _require_bytes(path: str, body: bytes, n: int) -> None:
    if len(body) < n:
        _refuse_damaged(path)


def _refuse_damaged(path: str) -> NoReturn:
    refuse(4, f"the header of /{path} is damaged; fetch the file or make it again")


def _find_block(body: bytes) -> tuple[int, int]:
    """Return where a further block's messages begin, and their bytes."""
    begin = int.from_bytes(body[:_ADDRESS], "little")
    length = int.from_bytes(body[_ADDRESS : 2 * _ADDRESS], "little")
    signature = len(b"OCHK")
    return begin + signature, max(length - signature - _CHECKSUM, 0)


def _iterate_block(path: str, block: bytes, *, with_order: bool) -> Iterator[_Message]:
    """Yield the messages of a block. with_order: each has the number of its creation."""
    n_head = 6 if with_order else 4
    at = 0
    while at + n_head <= len(block):  # what is left behind the last may be a gap
        size = int.from_bytes(block[at + 1 : at + 3], "little")
        begin = at + n_head
        if begin + size > len(block):
            _refuse_damaged(path)
        yield _Message(block[at], block[at + 3], block[begin : begin + size])
        at = begin + size
