"""Points of a search space: the same for years, the first of more, alike where words are shared."""

import math

import numpy as np
import pytest
from scipy.stats import qmc

from fltrain.studies.plans.search_points import ListedWord, SpannedWord, list_points
from niidpart.errors import UsageError

LR = SpannedWord("lr", 0.001, 1, is_log=True, is_whole=False)
MU = SpannedWord("mu", 0, 1, is_log=False, is_whole=False)
EPOCHS = SpannedWord("local_epochs", 1, 8, is_log=True, is_whole=True)
RULE = ListedWord("rule", ["a", "b", "c"])


def test_points_are_the_same_for_years():
    assert [point["lr"] for point in list_points([LR], "sobol", 4, 0)] == [
        0.1953,
        0.006176,
        0.001098,
        0.03473,
    ]
    drawn = [point["lr"] for point in list_points([LR], "random", 3, 0)]
    assert drawn == [0.03561, 0.001692, 0.0142]
    assert drawn != [point["lr"] for point in list_points([LR], "random", 3, 1)]


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_fewer_points_are_the_first_of_more_and_shared_words_have_the_same_values(method):
    many = list_points([LR, MU, EPOCHS], method, 200, 3)
    assert list_points([LR, MU, EPOCHS], method, 7, 3) == many[:7]
    alone = [point["lr"] for point in list_points([LR], method, 200, 3)]
    shared = [point["lr"] for point in many]
    assert len(set(alone) & set(shared)) >= 190  # values that repeat are skipped where one is alone
    assert alone[:20] == shared[:20]
    assert len({repr(point) for point in many}) == 200


def test_values_lie_between_the_ends_and_follow_the_distribution():
    points = list_points([LR, MU, EPOCHS, RULE], "random", 2000, 0)
    logs = [math.log10(point["lr"]) for point in points]
    assert min(logs) >= -3
    assert max(logs) <= 0
    assert sum(logs) / len(logs) == pytest.approx(-1.5, abs=0.06)  # 3 standard errors
    assert sum(point["mu"] for point in points) / len(points) == pytest.approx(0.5, abs=0.02)
    epochs = [point["local_epochs"] for point in points]
    assert set(epochs) == set(range(1, 9))
    # of whole numbers e has the share of log(e + 1) - log(e)
    share = (math.log(2) - math.log(1)) / math.log(9)
    assert epochs.count(1) / len(epochs) == pytest.approx(share, abs=0.035)
    rules = [point["rule"] for point in points]
    assert all(rules.count(rule) / len(rules) == pytest.approx(1 / 3, abs=0.035) for rule in "abc")


def test_sobols_points_cover_the_space_more_evenly_than_random_ones():
    space = [MU, SpannedWord("momentum", 0, 1, is_log=False, is_whole=False)]

    def measure(method, seed):
        points = list_points(space, method, 64, seed)
        return qmc.discrepancy(np.array([list(point.values()) for point in points]))

    for seed in range(5):
        assert measure("sobol", seed) < 0.5 * measure("random", seed)
    # Each quarter of each word has a quarter of the points, but for values rounded at its ends.
    for seed in range(5):
        points = list_points(space, "sobol", 64, seed)
        for word in ("mu", "momentum"):
            quarters = [min(3, int(4 * point[word])) for point in points]
            assert all(abs(quarters.count(n) - 16) <= 1 for n in range(4))


def test_a_grid_goes_through_all_lists_and_small_spaces_are_drawn_without_repeats():
    numbers = ListedWord("n", [1, 2])
    grid = list_points([numbers, RULE], "grid", 6, 0)
    assert [tuple(point.values()) for point in grid] == [(n, r) for n in (1, 2) for r in "abc"]
    for method in ("random", "sobol"):
        drawn = list_points([numbers, RULE], method, 6, 0)
        assert sorted(map(repr, drawn)) == sorted(map(repr, grid))
    with pytest.raises(UsageError, match="7 trials are asked for, and n, rule have 6 settings"):
        list_points([numbers, RULE], "random", 7, 0)
