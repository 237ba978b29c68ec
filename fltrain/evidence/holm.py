"""Holm's correction: p values of a family, and the level that each of them has to reach."""

from collections.abc import Sequence
from typing import NamedTuple


class HolmStanding(NamedTuple):
    """A comparison within its family of `size`.

    n_open: over how many comparisons the level is shared when this one's turn comes, if it has the
    largest p of those that are claimed.
    """

    p_holm: float
    p_wilcoxon_holm: float
    n_open: int
    size: int


def list_standings(
    p_values: Sequence[float], p_wilcoxon: Sequence[float], level: float
) -> list[HolmStanding]:
    """Return how each comparison of a family stands. Whether it is claimed rests on `p_values`."""
    size = len(p_values)
    columns = (
        correct_by_holm(p_values),
        correct_by_holm(p_wilcoxon),
        list_reachable(p_values, level),
    )
    return [HolmStanding(*line, size) for line in zip(*columns, strict=True)]


def correct_by_holm(p_values: Sequence[float]) -> list[float]:
    """Return p values after Holm's correction over all of them.

    As `multipletests` of statsmodels does, which has Python look through all of its memory at each
    call: that took longer than the tables of a study.
    """
    size = len(p_values)
    corrected = [0.0] * size
    largest = 0.0
    for n_before, place in enumerate(_order_places(p_values)):
        n_open = size - n_before
        shared = p_values[place] * n_open
        largest = max(largest, min(shared, 1.0))
        corrected[place] = largest
    return corrected


def list_reachable(p_values: Sequence[float], level: float) -> list[int]:
    """Return for each comparison over how many Holm shares the level when it is asked last.

    Those with smaller p that are claimed before it leave the family.
    """
    size = len(p_values)
    ordered = _order_places(p_values)
    counts = [0] * size
    for place in ordered:
        n_open = size
        for other in ordered:
            if other == place:
                continue
            if p_values[other] > level / n_open:
                break
            n_open -= 1
        counts[place] = n_open
    return counts


def _order_places(p_values: Sequence[float]) -> list[int]:
    """Return the places of p values, that of the smallest first."""
    places = range(len(p_values))
    return sorted(places, key=lambda place: p_values[place])
