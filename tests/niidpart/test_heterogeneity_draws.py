"""The counts that bootstrap and IID deals draw follow the distributions that they should: against scipy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from niidpart.arithmetic.rng import stream
from niidpart.heterogeneity.resample import draw_deals, draw_dirichlet, draw_multinomial

DRAWS = 20_000


def fits(drawn, law):
    """Chi-square test of counts against a scipy distribution, cells of few joined; a wrong law gives p near 0."""
    low, high = int(law.ppf(0.001)), int(law.ppf(0.999))
    edges = np.arange(low, high + 1)
    while len(edges) > 40:
        edges = edges[::2]
    expected = np.diff(np.concatenate([[0], law.cdf(edges), [1]])) * len(drawn)
    seen = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    kept = expected > 5
    expected, seen = (
        np.append(expected[kept], expected[~kept].sum() + 1e-9),
        np.append(seen[kept], seen[~kept].sum()),
    )
    return stats.chi2.sf(
        ((seen - expected) ** 2 / np.maximum(expected, 1)).sum(), len(expected) - 1
    )


@pytest.mark.parametrize(
    "counts",
    [
        [3, 7],
        [1, 999],
        [999, 1],
        [40, 60],
        [5000, 5000],
        [300_000, 700_000],
        [2, 3, 5],
        [10, 0, 90],
        [1, 1, 1_000_000],
    ],
    ids=str,
)
def test_a_party_resampled_is_multinomial(counts):
    n = sum(counts)
    drawn = draw_multinomial(
        np.full(DRAWS, n), np.tile(counts, (DRAWS, 1)), stream(0, "test", str(counts))
    )
    assert (drawn.sum(axis=1) == n).all()
    assert (drawn[:, np.array(counts) == 0] == 0).all()
    for k, count in enumerate(counts):
        if count:
            assert fits(drawn[:, k], stats.binom(n, count / n)) > 1e-4
    if min(counts) > 1:
        p = np.array(counts) / n
        np.testing.assert_allclose(
            np.cov(drawn.T), n * (np.diag(p) - np.outer(p, p)), atol=6 * n * p.max() / DRAWS**0.5
        )


@pytest.mark.parametrize(
    ("totals", "sizes"),
    [
        ([6, 4], [3, 3, 4]),
        ([500, 300, 200], [100, 100, 800]),
        ([1, 99], [60, 40]),
        ([5000, 5000], [9000, 1000]),
        ([400_000, 600_000], [500_000, 250_000, 250_000]),
        (
            [30, 10**8],
            [10**7, 10**7, 5 * 10**7],
        ),  # few of a class among many, and a pool that is not dealt out
        ([70, 1930], [40, 1000]),
    ],
    ids=str,
)
def test_a_dealt_party_is_hypergeometric(totals, sizes):
    drawn = draw_deals(np.array(sizes), np.array(totals), DRAWS, stream(0, "test", str(totals)))
    assert drawn.shape == (DRAWS, len(sizes), len(totals))
    assert (drawn.sum(axis=2) == sizes).all()
    assert (drawn.sum(axis=1) <= totals).all()
    assert sum(sizes) < sum(totals) or (drawn.sum(axis=1) == totals).all()
    N = sum(totals)
    for p, size in enumerate(sizes):
        for k, total in enumerate(totals):
            assert fits(drawn[:, p, k], stats.hypergeom(N, total, size)) > 1e-4
    # two parties draw from one pool: of a class, what one has the other has not
    expected = -sizes[0] * sizes[1] * totals[0] * (N - totals[0]) / (N**2 * (N - 1))
    spread = np.std(
        (drawn[:, 0, 0] - drawn[:, 0, 0].mean()) * (drawn[:, 1, 0] - drawn[:, 1, 0].mean())
    )
    assert np.cov(drawn[:, 0, 0], drawn[:, 1, 0])[0, 1] == pytest.approx(
        expected, abs=5 * spread / DRAWS**0.5
    )


def test_many_classes_are_drawn_by_halves_with_the_same_laws():
    counts = np.arange(1, 101)  # more classes than are drawn one after the other
    n = int(counts.sum())
    again = draw_multinomial(
        np.full(DRAWS // 4, n), np.tile(counts, (DRAWS // 4, 1)), stream(0, "test", "halves")
    )
    dealt = draw_deals(np.array([300, 50]), counts, DRAWS // 4, stream(0, "test", "halves dealt"))
    assert (again.sum(axis=1) == n).all()
    assert (dealt.sum(axis=2) == [300, 50]).all()
    assert (dealt.sum(axis=1) <= counts).all()
    for k in (0, 31, 63, 64, 99):
        assert fits(again[:, k], stats.binom(n, counts[k] / n)) > 1e-4
        assert fits(dealt[:, 0, k], stats.hypergeom(n, counts[k], 300)) > 1e-4


@pytest.mark.parametrize("shape", [0.05, 0.7, 3.0])
def test_dirichlet_draws_have_beta_marginals(shape):
    drawn = draw_dirichlet(np.tile([shape, 2.0, 5.0], (DRAWS, 1)), stream(0, "test"))
    np.testing.assert_allclose(drawn.sum(axis=1), 1, atol=1e-12)
    assert stats.kstest(drawn[:, 0], stats.beta(shape, 7.0).cdf).pvalue > 1e-4
    assert stats.kstest(drawn[:, 1], stats.beta(2.0, shape + 5.0).cdf).pvalue > 1e-4


@given(totals=st.lists(st.integers(0, 3000), min_size=1, max_size=6).filter(any), data=st.data())
def test_deals_never_give_what_is_not_there(totals, data):
    left, sizes = sum(totals), []
    for _ in range(data.draw(st.integers(1, 6))):
        sizes.append(data.draw(st.integers(0, left)))
        left -= sizes[-1]
    drawn = draw_deals(
        np.array(sizes), np.array(totals), 5, stream(data.draw(st.integers(0, 99)), "test")
    )
    assert (drawn >= 0).all()
    assert (drawn.sum(axis=2) == sizes).all()
    assert (drawn.sum(axis=1) <= totals).all()
    again = draw_multinomial(
        drawn.sum(axis=2).reshape(-1), drawn.reshape(-1, len(totals)), stream(0, "test")
    )
    assert (again.sum(axis=1) == drawn.sum(axis=2).reshape(-1)).all()
    assert (again[drawn.reshape(again.shape) == 0] == 0).all()
