"""Attacks on the container: what it is, where its links lead, of which types, layouts and filters its data sets are (rules 1 to 17)."""

import io
import os
import struct

import h5py
import numpy as np

from .registry import NEW, bytewise, edits, lookup3, patched, places, put

SECRET = "canary/secret.h5"  # beside the bad file; nobody may open it


def low_level(f, kind, shape, plist=None, maximum=None):
    """A data set that h5py's own functions would not make."""
    return h5py.h5d.create(
        f["draws"].id, b"odd", kind, h5py.h5s.create_simple(shape, maximum or shape), plist
    )


def creation(chunk, *steps):
    """Properties of a data set: its chunks, then each step on them."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunk)
    for step in steps:
        step(plist)
    return plist


# ---------------------------------------------------------------- before the library


@places(1)
def fifo(path):  # opening it would wait for ever
    os.mkfifo(path)


@places(1)
def folder(path):
    path.mkdir()


@places(1)
def link_to_a_folder(path):
    path.symlink_to(path.parent)


@places(1)
def endless_device(path):
    path.symlink_to("/dev/zero")


@places(2)
def five_gigabytes_of_nothing(path):
    path.touch()
    os.truncate(path, 5 << 30)


for _name, _bytes in {
    "nothing": b"",
    "a_part_of_the_signature": b"\x89HDF",
    "a_text": b"hello",
    "a_wrong_signature": b"\x89HDF\r\n\x1a\r",
    "a_pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93.",
    "a_zip": b"PK\x03\x04" + bytes(60),
}.items():

    def _begins(path, raw=_bytes):
        path.write_bytes(raw)

    _begins.__name__ = f"begins_as_{_name}"
    places(3)(_begins)


@bytewise(3)
def behind_a_user_block(whole):
    return bytes(512) + whole


@places(3)
def a_real_user_block(path):
    with h5py.File(path, "w", userblock_size=512) as f:
        f["manifest"] = np.zeros(4, "u1")


# ---------------------------------------------------------------- links


@edits(10)
def soft_link(f):
    f["draws/alias"] = h5py.SoftLink("/train/indices")


@edits(10)
def soft_link_to_nowhere(f):
    f["draws/alias"] = h5py.SoftLink("/nowhere")


@edits(10)
def soft_link_in_place_of_a_part(f):
    del f["val"]
    f["val"] = h5py.SoftLink("/test")


@edits(10)
def external_link(f):
    f["draws/secret"] = h5py.ExternalLink(SECRET, "/")


@edits(10)
def external_link_in_place_of_a_part(f):
    del f["train"]
    f["train"] = h5py.ExternalLink(SECRET, "/train")


@edits(10)
def external_link_in_place_of_the_manifest(f):
    del f["manifest"]
    f["manifest"] = h5py.ExternalLink(SECRET, "/manifest")


@bytewise(10)
def user_defined_link(whole):
    """An external link whose class, 64, becomes 70: a kind that only a program of its own understands."""
    image = io.BytesIO(whole)
    with h5py.File(image, "r+", libver=NEW) as f:
        f.create_group("odd")["there"] = h5py.ExternalLink(SECRET, "/")
    content = image.getvalue()
    at = content.index(b"\x05there") - 1  # class, length of the name, name
    assert content[at] == 64
    return patched(content, at, b"\x46")


@edits(10)
def second_hard_link(f):
    f["val/also"] = f["train/indices"]


@edits(10)
def group_within_itself(f):
    f["draws/up"] = f["draws"]


@edits(10)
def root_within_itself(f):
    f["root"] = f["/"]


@bytewise(10)
def root_that_is_a_data_set(whole):
    """The superblock names the header of /manifest as the root, and its checksum is made to fit."""
    with h5py.File(io.BytesIO(whole)) as f:
        address = h5py.h5o.get_info(f["manifest"].id).addr
    raw = bytearray(whole)
    raw[36:44] = int(address).to_bytes(8, "little")
    raw[44:48] = lookup3(bytes(raw[:44])).to_bytes(4, "little")
    return bytes(raw)


@bytewise(10)
def root_that_is_a_type(whole):
    image = io.BytesIO(whole)
    with h5py.File(image, "r+", libver=NEW) as f:
        f["kind"] = np.dtype("<i4")
        address = h5py.h5o.get_info(f["kind"].id).addr
    raw = bytearray(image.getvalue())
    raw[36:44] = int(address).to_bytes(8, "little")
    raw[44:48] = lookup3(bytes(raw[:44])).to_bytes(4, "little")
    return bytes(raw)


@bytewise(12)
def two_links_of_one_name(whole):  # the library may list the one and open the other
    image = io.BytesIO(whole)
    with h5py.File(image, "r+", libver=NEW) as f:
        f["draws/aaaa"] = np.zeros(3)
        f["draws/bbbb"] = np.ones(3)
    content = image.getvalue()
    return patched(content, content.index(b"\x04bbbb") + 1, b"aaaa")


@edits(10)
def two_groups_in_a_circle(f):
    f["a/b/c"] = f.create_group("a")


@edits(10)
def a_thousand_links_to_one(f):
    for i in range(1000):
        f[f"draws/{i}"] = f["train/indices"]


@edits(10)
def named_type(f):
    f["kind"] = np.dtype("<i4")


@edits(11)
def deep_groups(f):
    f.create_group("a/b/c/d/e")


@edits(11)
def too_many_objects(f):
    for i in range(4200):
        h5py.h5g.create(f["draws"].id, str(i).encode())


@edits(11)
def too_many_objects_in_all(f):
    for i in range(4200):
        h5py.h5g.create(f.require_group(f"{i % 4}").id, str(i).encode())


# ---------------------------------------------------------------- names

for _name, _text in {
    "with_a_space": b"a b",
    "with_a_bell": b"a\x07",
    "with_an_escape": b"\x1b[2J",
    "in_other_letters": "naïve".encode(),
    "that_runs_backwards": "a\u202eb".encode(),
    "that_is_no_utf8": b"\xff\xfe",
    "that_is_long": b"a" * 65,
    "of_a_megabyte": b"a" * 60_000,
    "that_ends_in_a_line_break": b"a\n",
    "of_two_dots": b"..",
    "of_a_windows_path": b"C:\\x",
}.items():

    def _named(f, text=_text):
        h5py.h5g.create(f["draws"].id, text)

    _named.__name__ = f"name_{_name}"
    edits(12)(_named)


def _renamed(whole, to):
    return patched(whole, whole.index(b"\x0bproportions") + 1, to.ljust(11, b"x"))


@bytewise(12)
def name_with_a_slash(whole):
    return _renamed(whole, b"a/b")


@bytewise(12)
def name_that_climbs(whole):
    return _renamed(whole, b"../../etc/")


@bytewise(4, 10, 12, 50, may=True)
def name_with_a_nul(whole):
    return _renamed(whole, b"moved\0")


@bytewise(4, 12, may=True)
def name_of_no_letters(whole):
    at = whole.index(b"\x0bproportions")
    return patched(whole, at, b"\0")


# ---------------------------------------------------------------- structures without checksums


@bytewise(8, base="old")
def container_of_the_first_hdf5(whole):
    return whole


@places(8)
def addresses_of_four_bytes(path):
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    creation.set_sizes(4, 4)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, creation, access)) as f:
        f["manifest"] = np.zeros(4, "u1")


@bytewise(8)
def addresses_counted_from_elsewhere(whole):
    raw = bytearray(whole)
    raw[12:20] = struct.pack("<Q", 48)
    raw[44:48] = lookup3(bytes(raw[:44])).to_bytes(4, "little")
    return bytes(raw)


@edits(8)
def one_group_of_the_first_hdf5(f):
    with h5py.File(f.filename + ".old", "w", libver="earliest") as other:
        other.create_group("g")["values"] = np.zeros(3)
        other.copy("g", f, "more")
    os.unlink(f.filename + ".old")


@bytewise(8, base="old")
def heap_that_frees_itself_for_ever(
    whole,
):  # its free list leads back to where it began: HDF5 2.0 takes memory until there is none
    at = whole.index(b"HEAP")
    data = struct.unpack("<Q", whole[at + 24 : at + 32])[0]
    raw = bytearray(whole)
    raw[at + 16 : at + 24] = struct.pack("<Q", 8)
    raw[data + 8 : data + 24] = struct.pack("<QQ", 8, 16)
    return bytes(raw)


# ---------------------------------------------------------------- attributes


@edits(9)
def twenty_attributes(f):
    for i in range(20):
        f["train/indices"].attrs[str(i)] = i


@edits(9)
def attributes_on_the_root(f):
    for i in range(3000):
        f.attrs[str(i)] = i


@edits(9)
def attributes_of_a_group_that_nobody_reads(f):
    for i in range(100):
        f.require_group("more").attrs[str(i)] = np.zeros(2000)


# ---------------------------------------------------------------- where the values are


@edits(13)
def values_in_another_file(f):
    f.create_dataset("draws/secret", shape=(4,), dtype="u1", external=[(SECRET, 0, 4)])


@edits(13)
def manifest_in_another_file(f):
    del f["manifest"]
    f.create_dataset("manifest", shape=(4,), dtype="u1", external=[(SECRET, 0, 4)])


@edits(13)
def virtual_data_set(f):
    layout = h5py.VirtualLayout(shape=(4,), dtype="i4")
    layout[:] = h5py.VirtualSource(SECRET, "values", shape=(4,))
    f.create_virtual_dataset("draws/secret", layout)


@edits(13)
def virtual_data_set_of_itself(f):
    layout = h5py.VirtualLayout(shape=(4,), dtype="i4")
    layout[:] = h5py.VirtualSource(".", "train/indices", shape=(4,))
    f.create_virtual_dataset("draws/secret", layout)


# ---------------------------------------------------------------- layouts


def _layout_of_manifest(whole):
    """Where the layout of /manifest stands, behind its version: class, flags, number of sizes, bytes of each."""
    with h5py.File(io.BytesIO(whole)) as f:
        header = h5py.h5o.get_info(f["manifest"].id).addr
    return whole.index(b"\x04\x02\x02\x02\x02", header) + 1


@bytewise(14)
def chunks_without_sizes(whole):
    """Where two bytes each of two sizes stood, the kind of index is read; HDF5 2.0 divides by sizes that it never read."""
    return patched(whole, _layout_of_manifest(whole) + 2, b"\x00\x04\x01")


@bytewise(14)
def chunks_of_fewer_axes_than_values(whole):
    """One size of four bytes in place of two of two."""
    return patched(whole, _layout_of_manifest(whole) + 2, b"\x01\x04")


@bytewise(14)
def chunks_by_a_tree_that_is_not_there(whole):  # HDF5 2.0 closes what it could not open
    at = _layout_of_manifest(whole)
    assert whole[at + 8 : at + 9] == b"\x01", "/manifest is no longer one chunk"
    return patched(whole, at + 8, b"\x05" + struct.pack("<IBB", 512, 100, 40))


@edits(14)
def chunks_in_an_array_that_grows(
    f,
):  # HDF5 2.0 counts for ever where it says that it grew without end
    put(f, "draws/odd", np.zeros(100), chunks=(10,), maxshape=(None,))


@edits(14)
def chunks_in_a_tree(f):
    put(f, "draws/odd", np.zeros((20, 20)), chunks=(5, 5), maxshape=(None, None))


@bytewise(14)
def root_that_is_a_data_set_without_chunk_sizes(whole):
    at = _layout_of_manifest(whole) + 2
    return patched(root_that_is_a_data_set(whole), at, b"\x00\x04\x01")


# ---------------------------------------------------------------- filters


@edits(15)
def lzf_filter(f):
    put(f, "draws/odd", np.zeros(100), compression="lzf")


@edits(15)
def scale_offset_filter(f):
    put(f, "draws/odd", np.zeros(100, "i4"), scaleoffset=True)


@edits(15)
def n_bit_filter(f):
    low_level(
        f,
        h5py.h5t.STD_I32LE,
        (100,),
        creation((100,), lambda p: p.set_filter(h5py.h5z.FILTER_NBIT, 0)),
    )


@edits(15)
def filter_of_a_plugin(
    f,
):  # optional, so that a file can have it where nobody has the plugin; reading it would load a library
    low_level(
        f,
        h5py.h5t.STD_I32LE,
        (100,),
        creation((100,), lambda p: p.set_filter(32_015, h5py.h5z.FLAG_OPTIONAL, (3,))),
    )


@edits(15)
def deflate_twice(f):  # the second inflation multiplies the first
    low_level(
        f,
        h5py.h5t.STD_I32LE,
        (1000,),
        creation((1000,), lambda p: p.set_deflate(9), lambda p: p.set_deflate(9)),
    )


@edits(15)
def filters_in_another_order(f):
    low_level(
        f,
        h5py.h5t.STD_I32LE,
        (1000,),
        creation((1000,), lambda p: p.set_deflate(9), lambda p: p.set_shuffle()),
    )


# ---------------------------------------------------------------- types


@edits(16)
def strings_of_any_length(f):
    put(f, "draws/odd", ["a", "bb"], dtype=h5py.string_dtype())


@edits(16)
def arrays_of_any_length(f):
    f.create_dataset("draws/odd", shape=(2,), dtype=h5py.vlen_dtype(np.int32))


@edits(16)
def manifest_of_any_length(f):
    put(f, "manifest", [f["manifest"][()].tobytes().decode()], dtype=h5py.string_dtype())


@edits(16)
def big_endian_indices(f):
    put(f, "train/indices", f["train/indices"][()].astype(">i4"))


@edits(16)
def references(f):
    put(f, "draws/odd", np.array([f["train"].ref], object), dtype=h5py.ref_dtype)


@edits(16)
def region_references(f):
    put(
        f,
        "draws/odd",
        np.array([f["train/indices"].regionref[:2]], object),
        dtype=h5py.regionref_dtype,
    )


@edits(16)
def bit_field(f):
    low_level(f, h5py.h5t.STD_B32LE, (3,))


@edits(16)
def integers_of_twenty_bits(f):
    kind = h5py.h5t.STD_I32LE.copy()
    kind.set_precision(20)
    low_level(f, kind, (3,))


@edits(16)
def floats_of_another_bias(f):
    kind = h5py.h5t.IEEE_F64LE.copy()
    kind.set_ebias(7)
    low_level(f, kind, (3,))


for _name, _values in {
    "long_strings": np.array([b"a" * 257]),
    "big_endian": np.arange(4, dtype=">i4"),
    "booleans": np.ones(3, bool),
    "compound": np.zeros(3, [("a", "i4"), ("b", "f8")]),
    "array_type": np.zeros(3, [("a", "i4", (2,))]),
    "opaque": np.array([b"abc"], "V3"),
    "complex_numbers": np.zeros(3, complex),
    "long_double": np.zeros(3, np.longdouble),
    "three_axes": np.zeros((2, 2, 2)),
    "no_axis": 3.0,
    "null_space": h5py.Empty("f8"),
}.items():

    def _typed(f, values=_values):
        put(f, "draws/odd", values)

    _typed.__name__ = _name
    edits(16)(_typed)


# ---------------------------------------------------------------- sizes


@edits(17)
def declares_256_tebibytes(f):
    f.create_dataset("draws/odd", shape=(1 << 45,), dtype="i8", chunks=(1000,))


@edits(17)
def declares_more_than_64_bits_can_say(f):
    f.create_dataset("draws/odd", shape=(1 << 40, 1 << 40), dtype="i8", chunks=(1000, 1))


@edits(17)
def declares_memory_without_chunks(f):
    f.create_dataset("draws/odd", shape=(1 << 30,), dtype="i8")


@edits(17)
def declares_much_where_nobody_reads(f):
    f.create_dataset("more/odd", shape=(1 << 45,), dtype="i8", chunks=(1000,))


@edits(14)  # a data set may have larger chunks only where it may grow
def chunk_far_larger_than_its_data_set(f):  # reading one value would allocate the chunk
    low_level(f, h5py.h5t.STD_I32LE, (10,), creation((1 << 28,)), maximum=(h5py.h5s.UNLIMITED,))


# ---------------------------------------------------------------- damage


def _cut(name, where):
    def change(whole):
        return whole[: where(len(whole))]

    change.__name__ = f"cut_off_{name}"
    bytewise(4, 18, may=True)(change)


_cut("after_the_signature", lambda n: 8)
_cut("in_the_superblock", lambda n: 30)
_cut("at_a_tenth", lambda n: n // 10)
_cut("in_the_middle", lambda n: n // 2)
_cut("at_nine_tenths", lambda n: n * 9 // 10)
_cut("by_one_byte", lambda n: n - 1)


@bytewise(4)
def superblock_with_a_wrong_checksum(whole):
    return whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]


@bytewise(4)
def superblock_of_version_9(whole):
    return whole[:8] + b"\x09" + whole[9:]


@bytewise(4, base="old")
def root_beyond_the_end(
    whole,
):  # version 0: 24 bytes, four addresses, then the root's symbol table entry: offset of the name, address
    return whole[:64] + struct.pack("<Q", 1 << 60) + whole[72:]


@bytewise(4, base="old")
def offsets_of_255_bytes(whole):
    return whole[:13] + b"\xff" + whole[14:]
