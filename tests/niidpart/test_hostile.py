"""Files that want to do harm, or that something damaged: refused before a value of them is believed (rules 1 to 18, guard.py).

An attack is a function that edits a good file; the rule that it breaks stands above it. No other fault may be made up.
"""

import os
import re
import subprocess
import zlib

import h5py
import numpy as np
import pytest

import niidpart

ATTACKS = []


def attack(rule):
    def add(edit):
        ATTACKS.append(pytest.param(rule, edit, id=edit.__name__))
        return edit

    return add


def put(f, path, values, **how):
    if path in f:
        del f[path]
    f.create_dataset(path, data=values, **how)


def low_level(f, kind, shape, plist=None, maximum=None):
    """A data set that h5py's own functions would not make."""
    return h5py.h5d.create(f["draws"].id, b"odd", kind, h5py.h5s.create_simple(shape, maximum or shape), plist)


@attack(10)
def soft_link(f):
    f["draws/alias"] = h5py.SoftLink("/train/indices")


@attack(10)
def soft_link_to_nowhere(f):
    f["draws/alias"] = h5py.SoftLink("/nowhere")


@attack(10)
def external_link(f):
    f["draws/secret"] = h5py.ExternalLink("/etc/passwd", "/")


@attack(10)
def external_link_in_place_of_a_part(f):
    del f["train"]
    f["train"] = h5py.ExternalLink("other.h5", "/train")


@attack(10)
def second_hard_link(f):
    f["val/also"] = f["train/indices"]


@attack(10)
def group_within_itself(f):
    f["draws/up"] = f["draws"]


@attack(10)
def root_within_itself(f):
    f["root"] = f["/"]


@attack(10)
def two_groups_in_a_circle(f):
    f["a/b/c"] = f.create_group("a")


@attack(10)
def named_type(f):
    f["kind"] = np.dtype("<i4")


@attack(11)
def deep_groups(f):
    f.create_group("a/b/c/d/e")


@attack(11)
def too_many_objects(f):
    for i in range(4200):
        h5py.h5g.create(f["draws"].id, str(i).encode())


@attack(12)
def name_with_a_space(f):
    f.create_group("draws/a b")


@attack(12)
def name_with_a_control_character(f):
    f.create_group("draws/a\x07")


@attack(12)
def name_in_other_letters(f):
    f.create_group("draws/naïve")


@attack(12)
def name_that_is_no_utf8(f):
    h5py.h5g.create(f["draws"].id, b"\xff\xfe")


@attack(12)
def name_that_is_long(f):
    f.create_group("draws/" + "a" * 65)


@attack(12)
def name_that_ends_in_a_line_break(f):
    f.create_group("draws/a\n")


@attack(13)
def values_in_another_file(f):
    f.create_dataset("draws/secret", shape=(4,), dtype="u1", external=[("/etc/passwd", 0, 4)])


@attack(13)
def virtual_data_set(f):
    layout = h5py.VirtualLayout(shape=(4,), dtype="i4")
    layout[:] = h5py.VirtualSource("/etc/passwd", "values", shape=(4,))
    f.create_virtual_dataset("draws/secret", layout)


@attack(15)
def lzf_filter(f):
    put(f, "draws/odd", np.zeros(100), compression="lzf")


@attack(15)
def scale_offset_filter(f):
    put(f, "draws/odd", np.zeros(100, "i4"), scaleoffset=True)


@attack(15)
def deflate_twice(f):  # the second inflation multiplies the first: 7 kB become a gigabyte
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1000,))
    plist.set_deflate(9)
    plist.set_deflate(9)
    low_level(f, h5py.h5t.STD_I32LE, (1000,), plist).write_direct_chunk((0,), zlib.compress(zlib.compress(bytes(1 << 20))))


@attack(16)
def strings_of_any_length(f):
    put(f, "draws/odd", ["a", "bb"], dtype=h5py.string_dtype())


@attack(16)
def arrays_of_any_length(f):
    f.create_dataset("draws/odd", shape=(2,), dtype=h5py.vlen_dtype(np.int32))


@attack(16)
def long_strings(f):
    put(f, "draws/odd", np.array([b"a" * 257]))


@attack(16)
def big_endian(f):
    put(f, "draws/odd", np.arange(4, dtype=">i4"))


@attack(16)
def big_endian_indices(f):
    put(f, "train/indices", f["train/indices"][()].astype(">i4"))


@attack(16)
def booleans(f):
    put(f, "draws/odd", np.ones(3, bool))


@attack(16)
def compound(f):
    put(f, "draws/odd", np.zeros(3, [("a", "i4"), ("b", "f8")]))


@attack(16)
def opaque(f):
    put(f, "draws/odd", np.array([b"abc"], "V3"))


@attack(16)
def references(f):
    put(f, "draws/odd", np.array([f["train"].ref], object), dtype=h5py.ref_dtype)


@attack(16)
def complex_numbers(f):
    put(f, "draws/odd", np.zeros(3, complex))


@attack(16)
def bit_field(f):
    low_level(f, h5py.h5t.STD_B32LE, (3,))


@attack(16)
def long_double(f):
    put(f, "draws/odd", np.zeros(3, np.longdouble))


@attack(16)
def three_axes(f):
    put(f, "draws/odd", np.zeros((2, 2, 2)))


@attack(16)
def no_axis(f):
    put(f, "draws/odd", 3.0)


@attack(16)
def null_space(f):
    f["draws/odd"] = h5py.Empty("f8")


@attack(17)
def declares_far_more_than_it_stores(f):
    f.create_dataset("draws/odd", shape=(1 << 45,), dtype="i8", chunks=(1000,))


@attack(17)
def declares_more_than_64_bits_can_say(f):
    f.create_dataset("draws/odd", shape=(1 << 40, 1 << 40), dtype="i8", chunks=(1000, 1))


@attack(17)
def declares_memory_without_chunks(f):
    f.create_dataset("draws/odd", shape=(1 << 30,), dtype="i8")


@attack(17)
def chunk_far_larger_than_its_data_set(f):  # reading one value would allocate the chunk
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1 << 28,))
    low_level(f, h5py.h5t.STD_I32LE, (10,), plist, maximum=(h5py.h5s.UNLIMITED,))


@pytest.mark.parametrize(("rule", "edit"), ATTACKS)
def test_an_attack_is_refused_by_the_rule_that_it_breaks(rule, edit, tampered, refused):
    refused(tampered(edit), rule)


def test_what_is_not_a_regular_file_is_refused(tmp_path, refused):
    os.mkfifo(tmp_path / "fifo")  # opening it would wait for ever
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for name in ("fifo", "folder", "link"):
        refused(tmp_path / name, 1)
    assert niidpart.check("/dev/zero")[0].rule == 1


def test_a_file_that_is_too_large_is_refused(small_file, monkeypatch, refused):
    monkeypatch.setattr("niidpart.guard.MAX_FILE", small_file.stat().st_size - 1)
    refused(small_file, 2)


def test_data_sets_that_are_too_large_together_are_refused(small_file, monkeypatch, refused):
    with h5py.File(small_file) as f:
        largest = f["manifest"].nbytes
    monkeypatch.setattr("niidpart.guard.MAX_MEMORY", largest)  # none of them alone
    refused(small_file, 17)
    monkeypatch.setattr("niidpart.guard.MAX_MEMORY", largest - 1)
    refused(small_file, 17)


@pytest.mark.parametrize("content", [b"", b"\x89HDF", b"hello", b"\x89HDF\r\n\x1a\r", b"\0" * 512 + b"\x89HDF\r\n\x1a\n"])
def test_what_does_not_begin_as_hdf5_does_is_refused(content, tmp_path, refused):
    (tmp_path / "split.h5").write_bytes(content)
    refused(tmp_path / "split.h5", 3)


def test_a_file_that_is_cut_off_is_refused(small_file, tmp_path):
    whole = small_file.read_bytes()
    for length in range(8, len(whole), 97):
        (tmp_path / "split.h5").write_bytes(whole[:length])
        assert {fault.rule for fault in niidpart.check(tmp_path / "split.h5")} <= {4, 18}
        with pytest.raises(niidpart.SplitError):
            niidpart.read(tmp_path / "split.h5")


def test_a_damaged_value_is_refused(small_file, tmp_path, refused):
    with h5py.File(small_file) as f:
        place = f["train/indices"].id.get_chunk_info(0).byte_offset
    raw = bytearray(small_file.read_bytes())
    raw[place + 5] ^= 1
    (tmp_path / "split.h5").write_bytes(raw)
    refused(tmp_path / "split.h5", 18)


@pytest.mark.parametrize("how", ["external storage", "external link", "virtual data set"])
def test_no_other_file_is_opened(how, tampered, tmp_path, python):
    trap = str(tmp_path / "trap")  # a pipe without a writer: whoever opens it waits for ever
    os.mkfifo(trap)

    def edit(f):
        if how == "external storage":
            f.create_dataset("draws/secret", shape=(4,), dtype="u1", external=[(trap, 0, 4)])
        elif how == "external link":
            f["draws/secret"] = h5py.ExternalLink(trap, "/")
        else:
            layout = h5py.VirtualLayout(shape=(4,), dtype="u1")
            layout[:] = h5py.VirtualSource(trap, "values", shape=(4,))
            f.create_virtual_dataset("draws/secret", layout)

    path = tampered(edit)
    assert python("import sys, niidpart; print(len(niidpart.check(sys.argv[1])))", path, timeout=20).stdout.strip() == "1"
    with pytest.raises(subprocess.TimeoutExpired):  # the trap works
        python("import sys, h5py; h5py.File(sys.argv[1])['draws/secret'][()]", path, timeout=1.5)


def test_every_rule_of_the_guard_has_an_attack(project):
    used = {int(n) for n in re.findall(r"(?:_refuse|_Refused|Fault)\((\d+),", (project / "niidpart" / "guard.py").read_text())}
    tried = {p.values[0] for p in ATTACKS} | {1, 2, 3, 4, 18}
    # 14: HDF5 itself refuses a file with a layout that it does not know (rule 4), so no file reaches this one. 20: test_content.py.
    assert used - tried == {14, 20}
