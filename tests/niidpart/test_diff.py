"""What `diff` says of two splits: against loops, sklearn, and splits that are known to differ in one thing."""

import itertools
import json
from dataclasses import replace

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import niidpart
from niidpart import diff as difference
from niidpart.checking import differences
from niidpart.checking.part_differences import compare_parts
from niidpart.splits import split as splits
from niidpart.splits.part_making import make_part, make_part_from_pairs

Y = np.arange(300) % 5


@pytest.fixture(scope="module")
def split():
    return niidpart.make(Y, strategy="dir", beta=0.5, n_parties=6, seed=1)


def test_a_split_differs_from_itself_in_nothing(split):
    found = difference(split, niidpart.make(Y, strategy="dir", beta=0.5, n_parties=6, seed=1))
    assert found.same
    assert (found.recipe, found.source, found.columns, found.why_not) == ({}, {}, {}, "")
    [train] = found.parts.values()
    assert (train.n, train.only, train.moved, train.agreement, train.adjusted_rand) == (
        (300, 300),
        (0, 0),
        0,
        1,
        1,
    )
    assert (found.skew, found.skew_by) == ({}, "corrected")
    json.dumps(found.to_json(), allow_nan=False)


def test_splits_of_one_digest_are_compared_as_row_by_row():
    for strategy, n_parties in (("dir", 6), ("hierarchical", 4), ("homo", 1_001)):
        made = niidpart.make(
            np.arange(1200) % 5,
            strategy,
            n_parties=n_parties,
            val=0,
            **({"min_size": 0} if strategy == "dir" else {}),
        )
        found = difference(made, made)
        for name, part in made.parts.items():
            if part.n:
                assert found.parts[name] == compare_parts(part, part)
        assert found.parts.keys() == {name for name, part in made.parts.items() if part.n}


def test_no_skew_is_computed_of_splits_of_one_digest(split, tmp_path, monkeypatch):
    paths = [niidpart.write(split, tmp_path / name) for name in ("a.h5", "b.h5")]

    def refuse(*_):
        raise AssertionError("a skew was computed")

    monkeypatch.setattr(splits, "measure_skew", refuse)
    monkeypatch.setattr(differences, "measure_skew", refuse)
    assert difference(*paths).same
    with pytest.raises(AssertionError, match="was computed"):
        difference(split, niidpart.make(Y, strategy="homo", n_parties=6))


def test_what_a_file_claims_to_be_does_not_make_it_the_same(split, tmp_path):
    other = niidpart.make(Y, strategy="homo", n_parties=6)
    a, b = (niidpart.write(s, tmp_path / f"{i}.h5") for i, s in enumerate((split, other)))
    with h5py.File(b, "r+") as file:
        manifest = bytes(file["manifest"][:]).replace(other.digest.encode(), split.digest.encode())
        file["manifest"][...] = np.frombuffer(manifest, np.uint8)
    with pytest.raises(niidpart.SplitError, match="the digest of the split"):
        difference(a, b)


def test_the_recipe_is_compared_field_by_field(split):
    found = difference(
        split, niidpart.make(Y, strategy="dir", beta=0.1, n_parties=6, seed=2, min_size=10)
    )
    assert found.recipe == {"params.beta": (0.5, 0.1), "seed": (1, 2)}
    assert not found.same
    found = difference(split, niidpart.make(Y, strategy="labels", k=2, n_parties=5, seed=1))
    assert found.recipe == {
        "strategy": ("dir", "labels"),
        "params.beta": (0.5, None),
        "params.min_size": (10, None),
        "params.k": (None, 2),
        "n_parties": (6, 5),
    }


def test_columns_of_transforms_are_compared(split):
    kinds = [
        niidpart.make(Y, strategy="noise", sigma=sigma, n_parties=6, seed=1) for sigma in (0.1, 0.2)
    ]
    assert difference(*kinds).columns == {"noise_std": 6}
    assert difference(split, kinds[0]).columns == {"noise_seed": None, "noise_std": None}


def test_renamed_parties_are_found_again(split):
    names = np.array([3, 0, 5, 1, 4, 2])
    owner = np.empty(300, np.int64)
    owner[split.train.indices] = names[np.repeat(np.arange(6), split.train.sizes)]
    other = replace(split, train=make_part(owner, Y, 6, 5))
    found = difference(split, other).parts["train"]
    assert (found.agreement, found.adjusted_rand, found.only) == (1, 1, (0, 0))
    assert found.moved == (300 - split.train.sizes[4])  # party 4 keeps its name


owners = st.integers(1, 4).flatmap(
    lambda P: st.lists(st.integers(-1, P - 1), min_size=8, max_size=24).map(lambda v: (P, v))
)


@given(a=owners, b=owners)
def test_rows_are_compared_as_by_loops(a, b):
    (P, x), (Q, y) = a, b
    n = min(len(x), len(y))
    x, y = np.array(x[:n]), np.array(y[:n])
    labels = np.zeros(n, np.int64)
    found = compare_parts(make_part(x, labels, P, 1), make_part(y, labels, Q, 1))
    both = [i for i in range(n) if x[i] >= 0 and y[i] >= 0]
    assert found.n == ((x >= 0).sum(), (y >= 0).sum())
    assert found.only == (((x >= 0) & (y < 0)).sum(), ((y >= 0) & (x < 0)).sum())
    assert found.moved == sum(x[i] != y[i] for i in both)
    if not both:
        assert (found.agreement, found.adjusted_rand) == (None, None)
        return
    size = max(P, Q)
    best = max(
        sum(names[x[i]] == y[i] for i in both) for names in itertools.permutations(range(size))
    )
    assert found.agreement == pytest.approx(best / len(both))
    sklearn = pytest.importorskip("sklearn.metrics")
    assert found.adjusted_rand == pytest.approx(sklearn.adjusted_rand_score(x[both], y[both]))


@given(
    a=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=25),
    b=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=25),
)
def test_rows_that_parties_share_are_compared_by_who_holds_them(a, b):
    labels = np.zeros(10, np.int64)
    one, other = (
        make_part_from_pairs(*(np.array(v) for v in zip(*sorted(s), strict=True)), labels, 4, 1)
        for s in (a, b)
    )
    if not any(len({row for _, row in s}) < len(s) for s in (a, b)):
        return  # nobody shares: the test above
    held = [{row: {p for p, r in s if r == row} for _, row in s} for s in (a, b)]
    found = compare_parts(one, other)
    both = held[0].keys() & held[1].keys()
    assert found.n == (len(a), len(b))
    assert found.only == (len(held[0]) - len(both), len(held[1]) - len(both))
    assert found.moved == sum(held[0][row] != held[1][row] for row in both)
    assert (found.agreement, found.adjusted_rand) == (None, None)


def test_no_matching_of_names_where_parties_are_many():
    labels = np.zeros(1500, np.int64)
    one = make_part(np.arange(1500), labels, 1500, 1)
    found = compare_parts(one, make_part(np.roll(np.arange(1500), 1), labels, 1500, 1))
    assert (found.moved, found.agreement, found.adjusted_rand) == (1500, None, 1)


def test_other_data_is_said_and_the_rest_compared(split):
    longer = difference(
        split, niidpart.make(np.arange(400) % 5, strategy="dir", beta=0.5, n_parties=6, seed=1)
    )
    assert longer.why_not == "the data sets have 300 and 400 examples"
    assert (longer.parts, longer.recipe) == ({}, {})
    assert {"n", "labels_sha256"} == set(longer.source)
    assert (
        longer.skew["total-variation to-global"][0] != longer.skew["total-variation to-global"][1]
    )
    other = difference(split, niidpart.make(Y[::-1], strategy="dir", beta=0.5, n_parties=6, seed=1))
    assert (
        other.why_not
        == "the data sets have 300 examples each, but other labels, or in another order"
    )


def test_parts_are_compared_one_by_one(split):
    held_out = niidpart.make(Y, strategy="dir", beta=0.5, n_parties=6, seed=1, val=0.1, test=0.2)
    found = difference(split, held_out)
    assert list(found.parts) == ["train", "val", "test"]
    assert found.parts["train"].moved == 0  # who owns what is the same, some of it is put aside
    assert found.parts["train"].only == (held_out.val.n + held_out.test.n, 0)
    assert found.parts["val"].only == (0, held_out.val.n)
    assert found.parts["test"].agreement is None


def test_skew_is_compared(split):
    found = difference(split, niidpart.make(Y, strategy="homo", n_parties=6, seed=1))
    mine, theirs = found.skew["jensen-shannon pairwise"]
    assert mine > 0.1 > theirs
    assert found.skew["map_beta"] == (
        split.skew.map_beta_overall,
        pytest.approx(found.skew["map_beta"][1]),
    )
    one = difference(split, niidpart.make(Y, strategy="homo", n_parties=1))
    assert one.skew["jensen-shannon pairwise"][1] is None  # there is no pair


def test_files_are_compared_as_splits_are(tmp_path):
    a, b = (niidpart.make(np.arange(60) % 3, "homo", n_parties=3, seed=seed) for seed in (0, 1))
    found = niidpart.diff(
        niidpart.write(a, tmp_path / "a.h5"), str(niidpart.write(b, tmp_path / "b.h5"))
    )
    assert found.to_json() == niidpart.diff(a, b).to_json()
