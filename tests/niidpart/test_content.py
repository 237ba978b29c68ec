"""Files that are HDF5 as it should be and no split: what the manifest says, what the arrays mean (rules 20 to 51, check.py).

An attack is a function that edits a good file; the rule that it breaks stands above it. Where a rule is about what the arrays mean, the
digests are made anew (redigest), so that nothing but this rule stands in the way.
"""

import json
import re

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


@attack(20)
def no_manifest(f):
    del f["manifest"]


@attack(20)
def manifest_of_numbers(f):
    put(f, "manifest", np.arange(5.0))


@attack(20)
def manifest_of_floats_that_spell_it(f):
    raw = f["manifest"][()].tobytes()
    put(f, "manifest", np.frombuffer(raw + b" " * (-len(raw) % 8), "<f8"))


@attack(20)
def manifest_of_two_axes(f):
    put(f, "manifest", f["manifest"][()].reshape(1, -1))


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


@attack(41, redigest=True)
def column_of_a_transform_is_not_finite(f):
    put(f, "parties/noise_std", np.full(3, np.nan))


@attack(41, redigest=True)
def column_of_a_transform_is_of_another_type(f):
    put(f, "parties/noise_seed", np.zeros(3))


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
def test_an_attack_is_refused_by_the_rule_that_it_breaks(rule, redigest, edit, tampered, refused):
    refused(tampered(edit, redigest), rule)


def text(change):
    """A change of the manifest's text."""
    return lambda manifest: change(json.dumps(manifest))


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
def test_a_manifest_that_lies_is_refused(rule, change, with_manifest, refused):
    refused(with_manifest(change), rule)


def test_a_hint_is_held_to_the_same_rule(tampered, refused):
    refused(tampered(lambda f: put(f, "hint", np.frombuffer(b'{"root":NaN}', np.uint8))), 20)


def test_a_hint_that_is_no_text_is_no_hint(tampered):
    assert niidpart.read(tampered(lambda f: put(f, "hint", np.frombuffer(b'{"root":["/etc"]}', np.uint8)))).root == ""


def test_all_faults_are_named_together(tampered):
    def edit(f):
        f["train/counts"][0, 0] = 1000
        f["test/counts"][0, 0] = 1000

    faults = niidpart.check(tampered(edit))
    assert [fault.rule for fault in faults] == [33, 33]
    assert "/train/" in str(faults[0])
    assert "/test/" in str(faults[1])


# Numbers that a file may claim and nobody can allocate: a few hundred bytes must not cost the reader his memory or his time.
LIMITED = """
import resource, sys, niidpart
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
print(*sorted({fault.rule for fault in niidpart.check(sys.argv[1])}))
"""
GREEDY = [
    ("parties for 8 PB", changed("recipe", "n_parties", to=10**15)),
    ("parties for 16 GB", changed("recipe", "n_parties", to=2 * 10**9)),
    ("examples for 2 GB", changed("source", "n", to=(1 << 31) - 1)),
    ("text that is all backslashes and quotes", lambda manifest: '\\"' * 200_000),
    ("text that is all quotes", lambda manifest: '"' * 399_999),
]


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in GREEDY])
@pytest.mark.parametrize("parts", ["train", "train, val and test"])
def test_a_small_file_costs_little_to_refuse(change, parts, tampered, manifest, python):
    def edit(f):
        if parts == "train":
            del f["val"], f["test"]
        values = manifest.read(f)
        manifest.put(f, change(values) or values)

    refused_at_once(tampered(edit), python)


def test_ten_to_the_fifteen_examples_cost_little_to_refuse(tampered, manifest, python):
    def edit(f):  # rows of 64 bits, as so many need
        for part in ("train", "val", "test"):
            put(f, f"{part}/indices", f[f"{part}/indices"][()].astype("<i8"))
        values = manifest.read(f)
        values["source"]["n"] = 10**15
        manifest.put(f, values)

    refused_at_once(tampered(edit), python)


def refused_at_once(path, python):
    done = python(LIMITED, path, timeout=8)  # imports take half a second, the check some milliseconds
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "it was not refused"


def test_every_rule_of_the_content_has_an_attack(project):
    source = (project / "niidpart" / "check.py").read_text()
    used = {int(a or b) for a, b in re.findall(r'Fault\((\d+),|\((\d+), "(?:recipe|source|digests)"', source)}
    assert used <= {p.values[0] for p in ATTACKS} | {rule for rule, _, _ in MANIFESTS}
