"""The rules on the structure of one HDF5 data set: 13 to 17 and 19 of docs/format.md."""

import math
from typing import Any, NamedTuple

import h5py
import numpy as np

from .chunks import DEFLATE, FLETCHER32, SHUFFLE
from .faults import refuse
from .limits import INFLATE, MAX_CHUNK, MAX_MEMORY, MAX_TEXT, SLACK

_LAYOUTS = (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED)
_FILTERS = (SHUFFLE, DEFLATE, FLETCHER32)
_INTEGERS = [np.dtype(f"<{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
_FLOATS = [np.dtype(f"<f{size}") for size in (2, 4, 8)]


class Structure(NamedTuple):
    """The structure that a data set declares: its bytes in memory, its chunks, its type."""

    n_bytes: int
    n_chunks: int
    dtype: np.dtype[Any]


def check_dataset(path: str, item: h5py.Dataset) -> Structure:
    """Refuse a data set whose structure breaks a rule; return what it declares."""
    creation = item.id.get_create_plist()
    layout = creation.get_layout()
    if layout == h5py.h5d.VIRTUAL or creation.get_external_count():
        refuse(13, f"/{path} has its values in another file")
    if layout not in _LAYOUTS:
        refuse(14, f"/{path} has an unknown layout")
    _check_filters(path, creation)
    dtype = _find_type(item.id.get_type())
    if dtype is None:
        refuse(16, f"/{path} is not of little-endian integers, floats or fixed-length strings")
    space = item.id.get_space()
    is_simple = space.get_simple_extent_type() == h5py.h5s.SIMPLE
    if not is_simple or len(item.shape) not in (1, 2):
        refuse(16, f"/{path} has shape {item.shape}; one or two axes are needed")
    lengths = [int(n) for n in item.shape]  # python's integers do not overflow
    n_bytes = dtype.itemsize * math.prod(lengths)
    stored = item.id.get_storage_size()
    if n_bytes > stored * INFLATE + SLACK or n_bytes > MAX_MEMORY:
        refuse(17, f"/{path} declares {n_bytes} bytes and stores {stored}")
    return Structure(n_bytes, _check_chunks(path, item, dtype), dtype)


def _check_filters(path: str, creation: Any) -> None:
    n_filters = creation.get_nfilters()
    filters = [creation.get_filter(i)[0] for i in range(n_filters)]
    in_order = [code for code in _FILTERS if code in filters]
    if filters != in_order:
        allowed = "only shuffle, deflate and fletcher32 are allowed, each once and in this order"
        refuse(15, f"/{path} uses the filters {filters}; {allowed}")


def _check_chunks(path: str, item: h5py.Dataset, dtype: np.dtype[Any]) -> int:
    """Return the number of chunks."""
    if not item.chunks:
        return 0
    lengths = [int(n) for n in item.shape]
    axes = list(zip(lengths, item.chunks, strict=True))
    if any(chunk > max(n, 1) for n, chunk in axes):
        refuse(17, f"/{path} has chunks {item.chunks}, larger than its shape {item.shape}")
    size = dtype.itemsize * math.prod(item.chunks)
    if size > MAX_CHUNK:
        refuse(19, f"/{path} has chunks {item.chunks} of {size} bytes, more than {MAX_CHUNK}")
    return math.prod(-(-n // chunk) for n, chunk in axes)


def _find_type(kind: h5py.h5t.TypeID) -> np.dtype[Any] | None:
    """Return the numpy type of a number or a string of fixed length, None for any other."""
    if isinstance(kind, h5py.h5t.TypeStringID):
        if kind.is_variable_str() or not 0 < kind.get_size() <= MAX_TEXT:
            return None
        return np.dtype(f"S{kind.get_size()}")
    if isinstance(kind, h5py.h5t.TypeIntegerID):
        return _find_equal(kind, _INTEGERS)
    if isinstance(kind, h5py.h5t.TypeFloatID):
        return _find_equal(kind, _FLOATS)
    return None


def _find_equal(kind: h5py.h5t.TypeID, dtypes: list[np.dtype[Any]]) -> np.dtype[Any] | None:
    for dtype in dtypes:
        if kind.equal(h5py.h5t.py_create(dtype)):
            return dtype
    return None
