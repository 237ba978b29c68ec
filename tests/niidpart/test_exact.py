"""niidpart.arithmetic.exact: as near to the true functions as the platform's own, and the same bits everywhere (test_golden pins these)."""

import math

import numpy as np
from scipy import special

from niidpart.arithmetic import exact

ULP = 2.0**-52


# math's functions are the platform's libm, within an ulp of the truth; numpy's own kernels are off by up to four.
log, exp = np.vectorize(math.log), np.vectorize(math.exp)


def _relative(got, true):
    return float(np.max(np.abs(got - true) / np.abs(true)))


def test_log_is_within_an_ulp_or_two():
    x = np.concatenate([np.logspace(-300, 300, 20001), np.linspace(0.5, 2, 20001)])
    x = x[x != 1]
    assert _relative(exact.log(x), log(x)) < 2 * ULP


def test_log_of_one_is_zero_and_of_powers_of_two_is_a_multiple():
    assert exact.log(np.array([1.0]))[0] == 0
    powers = np.arange(1, 1000)
    assert _relative(exact.log(2.0**powers), powers * math.log(2)) < ULP


def test_log_holds_at_the_edges_of_uniform():
    edges = np.array([2.0**-53, 1 - 2.0**-53])  # the least and the greatest value of Stream.uniform
    assert _relative(exact.log(edges), np.array([-53 * math.log(2), math.log1p(-(2.0**-53))])) < ULP


def test_log_reaches_the_subnormals():
    assert _relative(exact.log(np.array([5e-324, 1e-310])), log([5e-324, 1e-310])) < ULP


def test_exp_is_within_an_ulp_or_two():
    x = np.concatenate([np.linspace(-700, 700, 20001), np.linspace(-1, 1, 20001)])
    assert _relative(exact.exp(x), exp(x)) < 2 * ULP


def test_exp_is_zero_far_below_and_one_at_zero():
    assert exact.exp(np.array([-700.1, -1e308, -np.inf])).tolist() == [0, 0, 0]
    assert exact.exp(np.array([0.0, -0.0])).tolist() == [1, 1]


def test_exp_undoes_log():
    x = np.logspace(-100, 100, 5001)
    assert (
        _relative(exact.exp(exact.log(x)), x) < 300 * ULP
    )  # |log x| <= 230: an ulp of the logarithm is 230 of x


def test_normal_quantile_agrees_with_scipy():
    p = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 20001), np.logspace(-300, -1, 20001)])
    p = p[p != 0.5]
    assert (
        _relative(exact.normal_quantile(p), special.ndtri(p)) < 20 * ULP
    )  # scipy's own is that far off in the tail


def test_normal_quantile_is_odd_and_rises():
    p = (np.arange(1, 4096) / 4096)[:2047]  # p and 1 - p both exact
    assert np.array_equal(exact.normal_quantile(p), -exact.normal_quantile(1 - p))
    assert (np.diff(exact.normal_quantile(p)) > 0).all()
    assert exact.normal_quantile(np.array([0.5]))[0] == 0


def test_normal_quantile_has_no_step_where_its_formulas_meet():
    for p in (0.075, 0.925, math.exp(-25)):  # |p - 0.5| = 0.425, and sqrt(-log p) = 5
        sides = exact.normal_quantile(np.array([np.nextafter(p, 0), p, np.nextafter(p, 1)]))
        assert np.ptp(sides) < 1e-14


def test_shapes_are_kept():
    x = np.full((2, 3, 4), 0.3)
    assert [f(x).shape for f in (exact.log, exact.exp, exact.normal_quantile)] == [(2, 3, 4)] * 3
    assert exact.log(np.zeros(0)).shape == (0,)
