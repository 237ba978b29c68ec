"""Files that are no splits, or that somebody wants to do harm with: each is refused by the rule that it breaks, and no other fault is made up.

An attack is a function that edits a good file; the rules it breaks stand above it. Where a rule is about what the arrays mean, the digests are
made anew, so that nothing but this rule stands in the way.
"""

import os
import re
import zlib

import h5py
import numpy as np
import pytest

import niidpart

ATTACKS = []


def attack(rule, redigest=False):
    def add(edit):
        ATTACKS.append(pytest.param(rule, redigest, edit, id=edit.__name__))
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


@attack(20)
def no_manifest(f):
    del f["manifest"]


@attack(20)
def manifest_of_numbers(f):
    put(f, "manifest", np.arange(5.0))


@attack(20)
def manifest_is_a_group(f):
    del f["manifest"]
    f.create_group("manifest")


@attack(30)
def no_train(f):
    del f["train"]


@attack(30)
def no_indices(f):
    del f["val/indices"]


@attack(30, redigest=True)
def wide_indices(f):
    put(f, "train/indices", f["train/indices"][()].astype("<i8"))


@attack(30, redigest=True)
def float_counts(f):
    put(f, "train/counts", f["train/counts"][()].astype("<f8"))


@attack(30)
def indices_of_two_axes(f):
    put(f, "train/indices", f["train/indices"][()].reshape(-1, 1))


@attack(30, redigest=True)
def counts_of_another_shape(f):
    put(f, "train/counts", f["train/counts"][()].T[:2].copy())


@attack(31, redigest=True)
def indptr_falls(f):
    f["train/indptr"][1] = int(f["train/indptr"][2]) + 1


@attack(31, redigest=True)
def indptr_does_not_begin_at_zero(f):
    f["train/indptr"][0] = 1


@attack(31, redigest=True)
def indptr_ends_beyond_the_indices(f):
    f["train/indptr"][3] = len(f["train/indices"]) + 1


@attack(31, redigest=True)
def indptr_is_negative(f):
    f["train/indptr"][1] = -1


@attack(32, redigest=True)
def index_beyond_the_data(f):
    f["train/indices"][-1] = 60


@attack(32, redigest=True)
def negative_index(f):
    f["train/indices"][0] = -1


@attack(32, redigest=True)
def indices_of_a_party_fall(f):
    f["train/indices"][:2] = f["train/indices"][:2][::-1]


@attack(32, redigest=True)
def one_example_twice_in_a_party(f):
    f["train/indices"][1] = f["train/indices"][0]


@attack(33, redigest=True)
def counts_are_too_many(f):
    f["train/counts"][0, 0] = f["train/counts"][0, 0] + 1


@attack(33, redigest=True)
def counts_are_negative(f):
    f["train/counts"][0] = f["train/counts"][0] + np.array([-100, 100, 0], "i4")


@attack(34, redigest=True)
def one_example_at_two_parties(f):
    indptr, indices = f["train/indptr"][()], f["train/indices"][()]
    mine = indices[indptr[1] : indptr[2]].copy()
    mine[0] = indices[0]
    f["train/indices"][indptr[1] : indptr[2]] = np.sort(mine)


@attack(34, redigest=True)
def one_example_in_train_and_test(f):
    mine = f["test/indices"][: int(f["test/indptr"][1])].copy()
    mine[0] = f["train/indices"][0]
    f["test/indices"][: len(mine)] = np.sort(mine)


@attack(40, redigest=True)
def column_of_the_wrong_length(f):
    put(f, "parties/noise_std", np.zeros(4))


@attack(40, redigest=True)
def column_of_two_axes(f):
    put(f, "parties/noise_std", np.zeros((3, 1)))


@attack(50)
def another_draw(f):
    f["draws/proportions"][0, 0] = 0.5


@attack(50)
def a_draw_that_the_manifest_does_not_know(f):
    put(f, "draws/more", np.arange(3))


@attack(50)
def a_draw_is_gone(f):
    del f["draws/moved"]


@attack(50)
def two_counts_exchanged(f):
    f["train/counts"][0] = f["train/counts"][0][::-1]


@pytest.mark.parametrize(("rule", "redigest", "edit"), ATTACKS)
def test_an_attack_is_refused_by_the_rule_that_it_breaks(rule, redigest, edit, tampered):
    refused(tampered(edit, redigest), rule)


def refused(path, rule):
    """`check` finds this one rule broken, and `read` raises it with the path."""
    faults = niidpart.check(path)
    assert {fault.rule for fault in faults} == {rule}, faults
    with pytest.raises(niidpart.SplitError) as caught:
        niidpart.read(path)
    assert caught.value.faults == faults
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    assert f"rule {rule}:" in str(caught.value)


def text(change):
    """A change of the manifest's text."""
    return lambda manifest: change(__import__("json").dumps(manifest))


def changed(*keys, to):
    """A change of one value of the manifest."""

    def change(manifest):
        inner = manifest
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = to

    return change


def without(*keys):
    def change(manifest):
        inner = manifest
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]

    return change


MANIFESTS = [
    (20, "not json", text(lambda t: t[:-1])),
    (20, "not an object", text(lambda t: f"[{t}]")),
    (20, "empty", text(lambda t: " ")),
    (20, "not ascii", text(lambda t: t.replace("dir", "dür"))),
    (20, "key twice", text(lambda t: '{"format":1,' + t[1:])),
    (20, "inner key twice", text(lambda t: t.replace('"beta":', '"beta":0.1,"beta":'))),
    (20, "NaN", text(lambda t: t.replace('"beta": 0.1', '"beta": NaN'))),
    (20, "Infinity", text(lambda t: t.replace('"beta": 0.1', '"beta": -Infinity'))),
    (20, "infinity in digits", text(lambda t: t.replace('"beta": 0.1', '"beta": 1e999'))),
    (20, "nested nine deep", changed("recipe", "params", "x", to=[[[[[[[]]]]]]])),
    (20, "nested without end", text(lambda t: "[" * 100_000)),
    (20, "a number of 5,000 digits", text(lambda t: t.replace('"seed": 1', '"seed": ' + "1" * 5000))),
    (21, "other format", changed("format", "name", to="niidpart-model")),
    (21, "no format", without("format")),
    (21, "format is a text", changed("format", to="niidpart-split")),
    (21, "major 2", changed("format", "major", to=2)),
    (21, "no major", without("format", "major")),
    (22, "unknown requirement", changed("requires", to=["overlap"])),
    (22, "requires is no list", changed("requires", to="overlap")),
    (22, "requires a list", changed("requires", to=[[]])),
    (22, "requires an object", changed("requires", to=[{"a": 1}])),
    (22, "no requires", without("requires")),
    (23, "no recipe", without("recipe")),
    (23, "recipe is a list", changed("recipe", to=[])),
    (23, "recipe with more", changed("recipe", "hook", to="x")),
    (23, "recipe with less", without("recipe", "val")),
    (23, "n_parties is a text", changed("recipe", "n_parties", to="3")),
    (23, "n_parties is true", changed("recipe", "n_parties", to=True)),
    (23, "n_parties is 0", changed("recipe", "n_parties", to=0)),
    (23, "seed is negative", changed("recipe", "seed", to=-1)),
    (23, "seed is beyond 64 bits", changed("recipe", "seed", to=1 << 64)),
    (23, "val is whole", changed("recipe", "val", to=0)),
    (23, "val and test leave nothing", changed("recipe", "val", to=0.9)),
    (23, "params is a list", changed("recipe", "params", to=[])),
    (23, "transform is a text", changed("recipe", "transforms", to=["noise"])),
    (23, "transform with more", changed("recipe", "transforms", 0, "hook", to="x")),
    (23, "no source", without("source")),
    (23, "n is 0", changed("source", "n", to=0)),
    (23, "n is a float", changed("source", "n", to=60.0)),
    (23, "n_test is negative", changed("source", "n_test", to=-1)),
    (23, "no classes", changed("source", "class_names", to=[])),
    (23, "class names are numbers", changed("source", "class_names", to=[0, 1, 2])),
    (23, "labels_sha256 is none", changed("source", "labels_sha256", to="0" * 63)),
    (23, "labels_sha256 ends in a line break", changed("source", "labels_sha256", to="0" * 64 + "\n")),
    (24, "no digests", without("digests")),
    (24, "digests are a list", changed("digests", to=[])),
    (24, "no digest of the split", without("digests", "split")),
    (24, "digest is a number", changed("digests", "train", to=1)),
    (24, "digest in capitals", changed("digests", "train", to="A" * 64)),
    (30, "another number of parties", changed("recipe", "n_parties", to=4)),
    (30, "another number of classes", changed("source", "class_names", to=["a", "b"])),
    (32, "fewer examples than are held", changed("source", "n", to=59)),
    (50, "no digest of a part", without("digests", "train")),
    (50, "another digest of a part", changed("digests", "train", to="0" * 64)),
    (50, "another digest of counts", changed("digests", "train/counts", to="0" * 64)),
    (50, "another digest of a column", changed("digests", "parties/noise_std", to="0" * 64)),
    (50, "a digest of nothing", changed("digests", "draws/more", to="0" * 64)),
    (51, "another digest of the split", changed("digests", "split", to="0" * 64)),
    (51, "another seed", changed("recipe", "seed", to=2)),
    (51, "another revision", changed("source", "revision", to="2")),
]


@pytest.mark.parametrize(("rule", "change"), [pytest.param(rule, change, id=name) for rule, name, change in MANIFESTS])
def test_a_manifest_that_lies_is_refused(rule, change, with_manifest):
    refused(with_manifest(change), rule)


def test_a_hint_is_held_to_the_same_rule(tampered):
    refused(tampered(lambda f: put(f, "hint", np.frombuffer(b'{"root":NaN}', np.uint8))), 20)


def test_a_hint_that_is_no_text_is_no_hint(tampered):
    assert niidpart.read(tampered(lambda f: put(f, "hint", np.frombuffer(b'{"root":["/etc"]}', np.uint8)))).root == ""


def test_what_is_not_a_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")  # opening it would wait for ever
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for name in ("fifo", "folder", "link"):
        refused(tmp_path / name, 1)
    assert niidpart.check("/dev/zero")[0].rule == 1


def test_a_file_that_is_too_large_is_refused(small_file, monkeypatch):
    monkeypatch.setattr("niidpart.guard.MAX_FILE", small_file.stat().st_size - 1)
    refused(small_file, 2)


def test_data_sets_that_are_too_large_together_are_refused(small_file, monkeypatch):
    monkeypatch.setattr("niidpart.guard.MAX_MEMORY", 1000)
    refused(small_file, 17)


@pytest.mark.parametrize("content", [b"", b"\x89HDF", b"hello", b"\x89HDF\r\n\x1a\r", b"\0" * 512 + b"\x89HDF\r\n\x1a\n"])
def test_what_does_not_begin_as_hdf5_does_is_refused(content, tmp_path):
    (tmp_path / "split.h5").write_bytes(content)
    refused(tmp_path / "split.h5", 3)


def test_a_file_that_is_cut_off_is_refused(small_file, tmp_path):
    whole = small_file.read_bytes()
    for length in range(8, len(whole), 97):
        (tmp_path / "split.h5").write_bytes(whole[:length])
        assert {fault.rule for fault in niidpart.check(tmp_path / "split.h5")} <= {4, 18}
        with pytest.raises(niidpart.SplitError):
            niidpart.read(tmp_path / "split.h5")


def test_a_damaged_value_is_refused(small_file, tmp_path):
    with h5py.File(small_file) as f:
        place = f["train/indices"].id.get_chunk_info(0).byte_offset
    raw = bytearray(small_file.read_bytes())
    raw[place + 5] ^= 1
    (tmp_path / "split.h5").write_bytes(raw)
    refused(tmp_path / "split.h5", 18)


# Numbers that a file may claim and nobody can allocate: a few hundred bytes must not cost the reader his memory or his time.
LIMITED = """
import resource, sys, niidpart
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
print(*sorted({fault.rule for fault in niidpart.check(sys.argv[1])}))
"""
GREEDY = [
    ("parties without end", changed("recipe", "n_parties", to=10**15)),
    ("parties for 16 GB", changed("recipe", "n_parties", to=2 * 10**9)),
    ("examples for 16 GB", changed("source", "n", to=(1 << 31) - 1)),
    ("text that is all backslashes and quotes", lambda manifest: '\\"' * 200_000),
    ("text that is all quotes", lambda manifest: '"' * 399_999),
]


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in GREEDY])
def test_a_small_file_costs_little_to_refuse(change, with_manifest, python):
    done = python(LIMITED, with_manifest(change), timeout=8)  # imports take half a second, the check some milliseconds
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "it was not refused"


def test_a_file_may_not_claim_a_row_of_examples_that_nobody_can_hold_in_memory(tampered, manifest, python):
    def edit(f):  # rows of 64 bits, as 10**15 examples need
        for part in ("train", "val", "test"):
            put(f, f"{part}/indices", f[f"{part}/indices"][()].astype("<i8"))
        values = manifest.read(f)
        values["source"]["n"] = 10**15
        manifest.put(f, values)

    done = python(LIMITED, tampered(edit, redigest=True), timeout=8)
    assert done.returncode == 0, done.stderr


def test_no_external_file_is_opened(tampered, tmp_path, python):
    (tmp_path / "secret").write_bytes(b"secret")
    paths = [tampered(values_in_another_file), tampered(external_link), tampered(virtual_data_set)]
    code = """
import sys, niidpart
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
niidpart.check(sys.argv[1])
print(*[path for path in opened if "passwd" in path])
"""
    for path in paths:
        assert python(code, path).stdout.strip() == ""


def test_every_rule_has_an_attack(project):
    source = "".join((project / "niidpart" / name).read_text() for name in ("guard.py", "check.py"))
    used = {int(a or b) for a, b in re.findall(r'(?:_refuse|_Refused|Fault)\((\d+),|\((\d+), "(?:recipe|source|digests)"', source)}
    tried = {p.values[0] for p in ATTACKS} | {rule for rule, _, _ in MANIFESTS} | {1, 2, 3, 4, 18}
    assert used - tried == {14}, "HDF5 itself refuses a file with a layout that it does not know (rule 4), so rule 14 cannot be reached from a file"


def test_all_faults_are_named_together(tampered):
    def edit(f):
        f["train/counts"][0, 0] = 1000
        f["test/counts"][0, 0] = 1000

    faults = niidpart.check(tampered(edit))
    assert [fault.rule for fault in faults] == [33, 33]
    assert "/train/" in str(faults[0])
    assert "/test/" in str(faults[1])
