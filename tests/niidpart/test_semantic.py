"""`semantic`: clusters that are found, shared out by Dirichlet, and the same in any order of adding."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import niidpart
from niidpart.arithmetic.rng import stream
from niidpart.strategies._clusters import cluster_rows


def make_blobs(n=4000, n_blobs=6, width=5):
    """(rows, blob of each): far apart, so that there is one right answer."""
    of_row = np.arange(n) % n_blobs
    centres = 40 * np.eye(n_blobs, width) + 10 * np.arange(n_blobs)[:, None]
    spread = (np.arange(n * width).reshape(n, width) * 7919 % 1013) / 1013
    return (centres[of_row] + spread).astype(np.float32), of_row


ROWS, BLOBS = make_blobs()
LABELS = np.arange(4000) * 7 % 10


def make(**asked):
    return niidpart.make(LABELS, "semantic", embeddings=ROWS, **{"clusters": 6, **asked})


def test_blobs_are_found():
    cluster = make(n_parties=5).draws["cluster"]
    pairs = set(zip(cluster.tolist(), BLOBS.tolist(), strict=True))
    assert len(pairs) == 6  # one cluster a blob


def test_lloyd_ends_where_no_row_is_nearer_to_another_centre():
    x = ROWS[:900]
    cluster = cluster_rows(lambda rows: x[rows], 900, 4, stream(1, "test"))
    centres = np.stack([x[cluster == k].mean(axis=0) for k in range(4)])
    nearest = ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == cluster).mean() > 0.995  # whole numbers of 16 bits, rounded means


def test_each_cluster_is_shared_out_by_its_draw():
    split = make(n_parties=8, min_size=0)
    sizes = np.bincount(split.draws["cluster"], minlength=6)
    for party, rows in enumerate(split.train):
        held = np.bincount(split.draws["cluster"][rows], minlength=6)
        assert np.abs(held - split.draws["proportions"][:, party] * sizes).max() < 1


def test_shares_have_the_law_of_dirichlet():
    shares = np.concatenate(
        [
            make(n_parties=4, beta=0.7, min_size=0, seed=s).draws["proportions"][:, 0]
            for s in range(60)
        ]
    )
    assert stats.kstest(shares, stats.beta(0.7, 3 * 0.7).cdf).pvalue > 1e-3


def test_labels_are_not_looked_at():
    other = niidpart.make(LABELS[::-1] // 5, "semantic", embeddings=ROWS, clusters=6, n_parties=5)
    assert np.array_equal(other.train.indices, make(n_parties=5).train.indices)


def test_the_scale_and_the_type_of_numbers_do_not_matter():
    """Whole numbers of a power of two over the same range are the same rows."""
    whole = np.rint(ROWS * 16).astype(np.int64)
    found = [
        niidpart.make(LABELS, "semantic", embeddings=rows, clusters=6, n_parties=5).train.digest
        for rows in (whole, whole / 1024, whole.astype(np.float32))
    ]
    assert len(set(found)) == 1


def test_products_are_exact_whatever_is_added_first():
    """Columns in another order add in another order: the clusters stay."""
    turned = niidpart.make(LABELS, "semantic", embeddings=ROWS[:, ::-1], clusters=6, n_parties=5)
    assert np.array_equal(turned.draws["cluster"], make(n_parties=5).draws["cluster"])


def test_without_embeddings_it_looks_at_the_features():
    data = niidpart.load("digits")
    by_features = niidpart.make(data, "semantic", n_parties=5)
    x = data.features(slice(None)).reshape(len(data.labels), -1)
    by_rows = niidpart.make(data, "semantic", embeddings=x, n_parties=5)
    assert np.array_equal(by_features.train.indices, by_rows.train.indices)
    assert by_features.recipe.params["embeddings_sha256"] == ""
    assert len(by_rows.recipe.params["embeddings_sha256"]) == 64


def test_its_file_is_verified_with_the_embeddings_and_without(tmp_path):
    data = niidpart.load("digits")
    rows = ROWS[: len(data.labels)]
    path = niidpart.write(
        niidpart.make(data, "semantic", embeddings=rows, n_parties=5), tmp_path / "semantic.h5"
    )
    alone = niidpart.verify(path)
    assert (alone.derived, alone.faults) == (False, [])
    assert "embeddings" in alone.why_not
    whole = niidpart.verify(path, data=replace(data, embeddings=rows))
    assert (whole.derived, whole.faults) == (True, [])
    other = niidpart.verify(path, data=replace(data, embeddings=rows + 1))
    assert [fault.rule for fault in other.faults] == [64]


def test_embeddings_of_equal_digest_deal_equally():
    """The recipe cites float32: numbers that differ below that are the same embeddings."""
    exact = (1e6 + np.linspace(0, 1, 4000))[:, None]  # float32 has steps of 1/16 there
    fine, coarse = (
        niidpart.make(LABELS, "semantic", embeddings=rows, clusters=6, n_parties=5)
        for rows in (exact, exact.astype(np.float32))
    )
    assert fine.recipe == coarse.recipe
    assert fine.digest == coarse.digest


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"embeddings": ROWS[:5]}, r"embeddings are float32\[5, 5\]; numbers \[N, D\]"),
        ({"embeddings": np.full((4000, 2), np.nan)}, "hold NaN or infinity"),
        ({"embeddings": np.full((4000, 2), 1e300)}, "hold NaN or infinity"),
        ({"embeddings": np.zeros((4000, 2))}, "only 1 different rows .* ask for fewer"),
        ({"embeddings": ROWS, "clusters": 4096}, "4096 clusters of 4000 examples"),
        ({}, "semantic looks at features, and this data set has labels alone"),
    ],
)
def test_what_cannot_be_clustered_is_refused(asked, said):
    with pytest.raises(niidpart.UsageError, match=said):
        niidpart.make(LABELS, "semantic", n_parties=5, **asked)
