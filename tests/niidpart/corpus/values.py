"""Attacks on chunks: what is stored is not what it should inflate to (rules 18 and 19)."""

import io
import zlib

import h5py
import numpy as np

from .registry import bytewise, edits, put
from .structure import creation, low_level


def shuffled(a):
    return np.ascontiguousarray(a.reshape(-1).view(np.uint8).reshape(-1, a.itemsize).T).tobytes()


def plain(f, path):
    """The data set anew with deflate and no checksum; (its id, its chunk, inflated and shuffled)."""
    values = f[path][()]
    put(f, path, values, chunks=values.shape, compression="gzip", shuffle=True)
    return f[path].id, shuffled(values)


@bytewise(18)
def one_bit_of_a_chunk(whole):
    with h5py.File(io.BytesIO(whole)) as f:
        at = f["train/indices"].id.get_chunk_info(0).byte_offset + 5
    return whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]


@edits(18)
def one_bit_of_a_chunk_without_a_checksum(f):
    item, raw = plain(f, "train/indices")
    chunk = bytearray(zlib.compress(raw))
    chunk[len(chunk) // 2] ^= 1
    item.write_direct_chunk((0,), bytes(chunk))


@edits(18)
def chunk_that_is_cut_off(f):
    item, raw = plain(f, "train/indices")
    item.write_direct_chunk((0,), zlib.compress(raw)[:-6])


@edits(18)
def chunk_with_a_tail(f):
    item, raw = plain(f, "train/indices")
    item.write_direct_chunk((0,), zlib.compress(raw) + b"tail")


@edits(18)
def chunk_that_inflates_to_less(f):
    item, raw = plain(f, "train/indices")
    item.write_direct_chunk((0,), zlib.compress(raw[:-4]))


@edits(18)
def chunk_that_is_no_deflate(f):
    item, _ = plain(f, "train/indices")
    item.write_direct_chunk((0,), b"hello")


@edits(18)
def chunk_of_one_byte(f):
    item, _ = plain(f, "train/indices")
    item.write_direct_chunk((0,), b"x")


@edits(18)
def chunk_that_is_missing(f):
    del f["draws/proportions"]
    f.create_dataset("draws/proportions", shape=(3, 3), dtype="<f8", chunks=(3, 3))


@edits(18)
def chunk_that_is_missing_in_between(f):
    values = f["train/indices"][()]
    del f["train/indices"]
    item = f.create_dataset("train/indices", shape=values.shape, dtype="<i4", chunks=(10,))
    item[:10], item[20:] = values[:10], values[20:]


@edits(18)
def checksum_of_something_else(f):
    values = f["train/indices"][()]
    put(f, "train/indices", values, chunks=values.shape, fletcher32=True)
    f["train/indices"].id.write_direct_chunk((0,), values.tobytes() + b"\0\0\0\1")


@edits(19)
def chunk_that_inflates_a_thousandfold(f):
    item, _ = plain(f, "train/indices")
    item.write_direct_chunk((0,), _bomb(f["train/indices"].nbytes))


def _bomb(size):
    """Zeros that inflate to more than `size` bytes, in less than `size`."""
    raw = zlib.compress(bytes(size * 100), 9)
    assert len(raw) < size
    return raw


@edits(19)
def manifest_that_inflates_to_a_quarter_of_a_gigabyte(
    f,
):  # it declares two megabytes, and stores one
    values = f["manifest"][()].tobytes() + b" " * (2 << 20)
    put(f, "manifest", np.frombuffer(values, "u1"), chunks=(len(values),), compression="gzip")
    squeeze = zlib.compressobj(1)
    raw = b"".join([squeeze.compress(b" " * (1 << 20)) for _ in range(256)] + [squeeze.flush()])
    f["manifest"].id.write_direct_chunk((0,), raw)


@edits(19)
def chunk_stored_larger_than_it_is(f):
    item, raw = plain(f, "train/indices")
    item.write_direct_chunk((0,), zlib.compress(raw) + bytes(60_000))


@edits(19)
def chunk_of_a_hundred_megabytes(f):
    low_level(
        f, h5py.h5t.STD_I32LE, (25 << 20,), creation((25 << 20,), lambda p: p.set_deflate(9))
    ).write_direct_chunk((0,), bytes(200_000))


@edits(19)
def hundred_thousand_chunks(f):
    put(f, "draws/odd", np.zeros(100_000, "u1"), chunks=(1,))
