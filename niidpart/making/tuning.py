"""A split that is as skewed as you ask: `tune` finds the value of an option that gives it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..data import Data, from_arrays
from ..errors import UsageError
from ..heterogeneity import MEASURES, evaluate_measure
from ..splits.split import FederatedSplit
from .derivation import make

_RANGE = (1e-3, 1e3)
_DIGITS = 3  # of the value that is found, so that it can be written down


def tune(
    labels: ArrayLike | Data,
    strategy: str | None = None,
    *,
    measure: str,
    target: float,
    tolerance: float = 0.01,
    option: str = "beta",
    after: Callable[[float, float], None] | None = None,
    **asked: Any,
) -> FederatedSplit:
    """The split of the given seed whose `measure` is `target` to within `tolerance`, by bisection over a strategy's option.

    measure: a file of niidpart/heterogeneity/measures; distances are those to the whole. target: its value on the scale of 0 (IID) to 1, as
    `niidpart show` prints it under `value`. option: a number from 1e-3 to 1e3 of which more means less skew; the one found has three digits.
    The recipe holds that number and nothing of the search, so the split is derived again like any other. after(option, value) is called
    for each split that was tried. asked: the other arguments of `make`. ValueError, with the nearest that was found, where the target
    is not reached.
    """
    if not 0 <= target <= 1 or not tolerance > 0:
        raise UsageError(
            f"target is {target} within {tolerance}; measures are on a scale of 0 (IID) to 1, and the tolerance must be above 0"
        )
    MEASURES.module(measure)  # an unknown one is answered with the nearest
    data = labels if isinstance(labels, Data) else from_arrays(None, labels)
    tried: dict[float, float] = {}

    def attempt(x: float) -> FederatedSplit | None:
        split = make(data, strategy, **asked | {option: x})
        tried[x] = evaluate_measure(measure, split.train.counts)
        if after:
            after(x, tried[x])
        return split if abs(tried[x] - target) <= tolerance else None

    low, high = _RANGE
    found = attempt(low) or attempt(high)
    within = tried[low] > target > tried.get(high, target)
    while found is None and within and (x := _middle(low, high)) not in (low, high):
        found = attempt(x)
        low, high = (x, high) if tried[x] > target else (low, x)
    if found is None:
        raise UsageError(_missed(measure, target, tolerance, option, tried))
    return found


def _middle(low: float, high: float) -> float:
    return float(f"{np.sqrt(low * high):.{_DIGITS}g}")


def _missed(
    measure: str, target: float, tolerance: float, option: str, tried: dict[float, float]
) -> str:
    near = min(tried, key=lambda x: abs(tried[x] - target))
    return (
        f"{measure} {target} within {tolerance} was not reached: the nearest is {tried[near]:.4f} with {option} {near:g}, "
        f"of values from {min(tried.values()):.4f} to {max(tried.values()):.4f}; take another target, tolerance, seed or number of parties"
    )
