"""Feature skew: energy distance and MMD against plain loops, and on splits of which it is known whether features differ."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import niidpart
from niidpart.features.kernels import (
    average_blocks,
    compute_kernel,
    measure_distances,
    project_to_components,
)
from niidpart.splits.part_making import make_part


def brute(x, lengths, w, kernel):
    """(to_rest, pairwise, each) of E k over pairs of different examples: 2 E k(X, Y) - E k(X, X') - E k(Y, Y')."""
    ends = np.cumsum(lengths)
    groups = [range(end - n, end) for n, end in zip(lengths, ends, strict=True)]

    def mean(a, b):
        values = [kernel(x[i], x[j]) for i in groups[a] for j in groups[b] if i != j]
        return sum(values) / len(values)

    P = len(lengths)
    each = []
    for p in range(P):
        others = [q for q in range(P) if q != p]
        v = {q: w[q] / sum(w[r] for r in others) for q in others}
        rest = sum(v[q] * v[r] * mean(q, r) for q in others for r in others)
        each.append(2 * sum(v[q] * mean(p, q) for q in others) - mean(p, p) - rest)
    pairs = [(p, q) for p in range(P) for q in range(p)]
    between = sum(w[p] * w[q] * (2 * mean(p, q) - mean(p, p) - mean(q, q)) for p, q in pairs) / sum(
        w[p] * w[q] for p, q in pairs
    )
    return sum(a * b for a, b in zip(w, each, strict=True)), between, each


@pytest.mark.parametrize("measure", ["energy", "mmd"])
@given(lengths=st.lists(st.integers(2, 5), min_size=2, max_size=4), seed=st.integers(0, 99))
def test_distances_are_those_of_loops(measure, lengths, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(lengths), 3))
    w = rng.dirichlet(np.ones(len(lengths)))
    matrix, bandwidth = compute_kernel(x, measure)
    if measure == "energy":
        to_rest, pairwise, each = brute(x, lengths, w, lambda a, b: math.dist(a, b))
    else:
        median = np.median([math.dist(x[i], x[j]) for i in range(len(x)) for j in range(i)])
        assert bandwidth == pytest.approx(median)
        # the squared MMD has the signs the other way round
        to_rest, pairwise, each = brute(
            x, lengths, w, lambda a, b: -math.exp(-(math.dist(a, b) ** 2) / (2 * median**2))
        )
    found = measure_distances(average_blocks(matrix, np.array(lengths)), w, measure)
    assert (found.to_rest, found.pairwise) == pytest.approx((to_rest, pairwise), abs=1e-9)
    assert found.each.tolist() == pytest.approx(each, abs=1e-9)
    order = rng.permutation(len(x))
    moved, _ = compute_kernel(x[order], measure)
    np.testing.assert_allclose(
        average_blocks(matrix, np.array(lengths), order),
        average_blocks(moved, np.array(lengths)),
        atol=1e-12,
    )


def test_all_principal_components_keep_all_distances():
    x = np.random.default_rng(0).normal(size=(30, 8))
    for flat in (x, x[:6]):  # more rows than columns, and fewer
        kept = project_to_components(flat, 8)
        np.testing.assert_allclose(
            compute_kernel(kept, "energy")[0], compute_kernel(flat, "energy")[0], atol=1e-7
        )
        variances = kept.var(axis=0)
        assert (np.diff(variances) <= 1e-9).all()


def split_of(x, owner, **more):
    """A split of features in which row i is at party owner[i]: groups are dealt one to each party."""
    data = niidpart.from_arrays(x, np.arange(len(x)) % 2)
    split = niidpart.make(data, strategy="homo", n_parties=int(owner.max()) + 1, **more)
    return replace(split, train=make_part(owner, data.labels, split.n_parties, 2)), data


@pytest.fixture(scope="module")
def normal():
    return np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32)


@pytest.mark.parametrize("measure", ["energy", "mmd"])
def test_iid_features_do_not_differ_and_shifted_ones_do(measure, normal):
    owner = np.arange(600) % 6
    split, data = split_of(normal, owner)
    same = niidpart.feature_skew(split, data, measure=measure)
    assert same.p_value > 0.05
    assert abs(same.to_rest - same.iid) < 3 * (same.iid_high - same.iid)
    shifted = normal + 0.8 * (owner == 2)[:, None]
    split, data = split_of(shifted.astype(np.float32), owner)
    other = niidpart.feature_skew(split, data, measure=measure)
    assert other.p_value == pytest.approx(1 / 101)
    assert other.to_rest > 3 * other.iid_high
    assert int(np.argmax(other.each)) == 2
    assert 0 < other.value < 1
    assert (other.n_examples, other.left_out, other.parties) == (600, 0, tuple(range(6)))


def test_the_scale_ends_at_1():
    # every party its own point, far from the others: the largest both can be
    owner = np.repeat(np.arange(4), 50)
    x = (np.eye(4)[owner] * 100).astype(np.float32)
    split, data = split_of(x, owner)
    assert niidpart.feature_skew(split, data).value_pairwise == pytest.approx(1)
    mmd = niidpart.feature_skew(split, data, measure="mmd")
    assert 0.3 < mmd.value_pairwise <= 1  # the kernel at the median distance is exp(-1/2), not 0


def test_what_parties_see_is_compared():
    x = np.full((400, 6), 0.5, np.float32)
    data = niidpart.from_arrays(x, np.arange(400) % 2)
    clean = niidpart.feature_skew(niidpart.make(data, strategy="homo", n_parties=4), data)
    noisy = niidpart.feature_skew(
        niidpart.make(data, strategy="noise", sigma=0.5, n_parties=4), data
    )
    assert (clean.to_rest, clean.p_value) == (0, 1)  # all examples are one point
    assert noisy.to_rest > 3 * noisy.iid_high


def test_limits_on_examples_and_small_parties(normal):
    owner = np.concatenate([np.zeros(300), np.ones(298), [2, 3]]).astype(np.int64)
    split, data = split_of(normal, owner)
    found = niidpart.feature_skew(split, data, per_party=20, pca=2)
    assert (found.n_examples, found.left_out, found.parties, found.pca) == (40, 2, (0, 1), 2)
    assert niidpart.feature_skew(split, data, per_party=20, pca=2) == found
    json.dumps(found.to_json(), allow_nan=False)


def test_pixels_are_divided_by_255():
    x = np.random.default_rng(0).integers(0, 256, (200, 3, 3)).astype(np.uint8)
    owner = np.arange(200) % 4
    small, _ = split_of((x / 255).astype(np.float32), owner)
    found = niidpart.feature_skew(*split_of(x, owner))
    floats = niidpart.feature_skew(
        small, niidpart.from_arrays((x / 255).astype(np.float32), np.arange(200) % 2)
    )
    assert found.to_rest == pytest.approx(floats.to_rest, abs=1e-6)


def test_what_cannot_be_compared_is_refused(normal):
    split, data = split_of(normal, np.arange(600) % 6)
    with pytest.raises(ValueError, match="this is not the data set that the split was made for"):
        niidpart.feature_skew(split, niidpart.from_arrays(normal, np.arange(600) % 3))
    with pytest.raises(ValueError, match="loaded without features"):
        niidpart.feature_skew(split, niidpart.from_arrays(None, np.arange(600) % 2))
    with pytest.raises(ValueError, match="measure is 'emd'; it must be energy or mmd"):
        niidpart.feature_skew(split, data, measure="emd")
    with pytest.raises(ValueError, match="per_party is 1 and pca None"):
        niidpart.feature_skew(split, data, per_party=1)
    lonely, data = split_of(normal[:3], np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="0 of 3 parties have 2 examples or more"):
        niidpart.feature_skew(lonely, data)
