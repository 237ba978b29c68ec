"""A split that is as skewed as you ask: `tune` finds the value of an option that gives it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..data import Data, from_arrays
from ..errors import UsageError
from ..heterogeneity import MEASURES, evaluate_measure
from ..heterogeneity.measures import SizeMeasure
from ..registry import AtLeast, AtMost, Option, coerce
from ..splits.recipe import Recipe
from ..splits.split import FederatedSplit
from ..strategies import STRATEGIES
from .completion import compose
from .derivation import make

_RANGE = (1e-3, 1e3)
_WIDE = (1e-9, 1e12)  # where the target lies outside of those, and the option's range allows it
_MOST = 1 << 20  # of whole numbers
_OF_DATA = ("groups", "noisy_labels", "embeddings")  # what `make` is given and no recipe holds
_DIGITS = 3  # of the value that is found, so that it can be written down


def tune(
    labels: ArrayLike | Data,
    strategy: str | None = None,
    *,
    measure: str,
    target: float,
    tolerance: float = 0.01,
    option: str | None = None,
    after: Callable[[float, float], None] | None = None,
    **asked: Any,
) -> FederatedSplit:
    """Return the split of a seed that is as skewed as asked, by bisection over an option.

    The recipe holds the option's value and nothing of the search, so the split is derived again
    like any other.

    Parameters
    ----------
    labels : array [N] or Data
        As `make` takes them.
    strategy : str, optional
        As `make` takes it.
    measure : str
        A file of niidpart/heterogeneity/measures; of distances the one to the whole.
    target : float
        Its plain value on the scale of 0 (IID) to 1, as `niidpart show` prints it under `value`:
        what the parties hold, not corrected for chance.
    tolerance : float
        How far from the target the value may be.
    option : str, optional
        A number of the strategy, looked for from 1e-3 to 1e3 and within its range, and beyond
        these where the target lies there; the one found has three digits. A whole one (classes a
        party) is looked for from its least value on. By default the one that the strategy names,
        for measures of sizes `SIZED_BY`, for all others `SKEWED_BY`, else beta.
    after : callable, optional
        after(option's value, measure's value) is called for each split that was tried.
    **asked
        The other arguments of `make`.

    Returns
    -------
    FederatedSplit

    Raises
    ------
    UsageError
        Where the target is not reached, with the nearest that was found.

    Examples
    --------
    >>> import niidpart
    >>> digits = niidpart.load("digits")
    >>> split = tune(digits, "dir", measure="hellinger", target=0.6, n_parties=20)
    >>> split.recipe.params["beta"]
    0.122
    """
    target = coerce("target", target, float)
    tolerance = coerce("tolerance", tolerance, float)
    if not 0 <= target <= 1 or not tolerance > 0:
        raise UsageError(
            f"target is {target} within {tolerance}; measures are on a scale of 0 (IID) to 1, and "
            "the tolerance must be above 0"
        )
    MEASURES.module(measure)  # an unknown one is answered with the nearest
    data = labels if isinstance(labels, Data) else from_arrays(None, labels)
    if option is None:
        option = find_turned_option(strategy, measure=measure, **asked)
    turned = _find_option(strategy, option, asked)
    tried: dict[float, float] = {}  # the option's value -> the measure's

    def attempt(x: float) -> FederatedSplit | None:
        split = make(data, strategy, **{**asked, option: x})
        tried[x] = evaluate_measure(measure, split.train.counts)
        if after:
            after(x, tried[x])
        return split if abs(tried[x] - target) <= tolerance else None

    search = _SkewSearch(attempt, tried, target)
    if turned is not None and turned.annotation is int:
        found = search.climb(*_find_bounds(turned, (1, _MOST)))
    else:
        found = search.bisect(*_find_bounds(turned, _RANGE))
        if found is None and search.is_outside():
            found = search.bisect(*_find_bounds(turned, _WIDE))
    if found is None:
        raise UsageError(_describe_nearest(measure, target, tolerance, option, tried))
    return found


def find_turned_option(
    strategy: str | None = None, measure: str | None = None, **asked: Any
) -> str:
    """Return the option of a strategy that `tune` looks for: what it says, else beta.

    measure: one of sizes is turned by what the strategy says of those, where it does. asked: the
    other arguments of `make`. UsageError where the strategy has no such option.
    """
    recipe = _compose(strategy, asked)
    turned = _read_turned_option(recipe, measure)
    if turned not in STRATEGIES.options(STRATEGIES.find(recipe.strategy)):
        raise UsageError(
            f"strategy {recipe.strategy!r} has no one number that its skew turns on, so no target "
            "can be asked of it; take another, such as dir"
        )
    return turned


def _read_turned_option(recipe: Recipe, measure: str | None) -> str:
    """Return what the strategy says of itself; of one that says nothing, beta."""
    if recipe.strategy not in STRATEGIES.names():
        return "beta"
    module = STRATEGIES.module(recipe.strategy)
    turned: str | Mapping[str, str] = getattr(module, "SKEWED_BY", "beta")
    if measure is not None and isinstance(MEASURES.record(measure), SizeMeasure):
        turned = getattr(module, "SIZED_BY", turned)
    if isinstance(turned, str):
        return turned
    return turned.get(recipe.params["rule"], "beta")  # of the replay of a peer


def _compose(strategy: str | None, asked: Mapping[str, Any]) -> Recipe:
    """Return the recipe that is asked for, before anything is turned."""
    settings = {key: value for key, value in asked.items() if key not in _OF_DATA}
    return compose(strategy, **settings)


def _find_option(strategy: str | None, option: str, asked: Mapping[str, Any]) -> Option | None:
    """Return what is declared of an option; None where there is none, which `make` refuses."""
    name = _compose(strategy, asked).strategy
    return STRATEGIES.options(STRATEGIES.find(name)).get(option)


def _find_bounds(option: Option | None, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the least and the largest value of an option that are tried."""
    low, high = bounds
    for bound in () if option is None else option.ranges:
        if isinstance(bound, AtLeast):
            low = max(low, bound.low)
        elif isinstance(bound, AtMost):
            high = min(high, bound.high)
    return low, high


@dataclass(frozen=True)
class _SkewSearch:
    """Looks for a value at which a measure has its target.

    attempt: returns the split of a value where that is near enough. tried: filled by it, the
    measure of each value.
    """

    attempt: Callable[[float], FederatedSplit | None]
    tried: Mapping[float, float]
    target: float

    def bisect(self, low: float, high: float) -> FederatedSplit | None:
        """Return the first split near enough between two values; None where the steps end."""
        less, more = high, low  # values of less and of more skew
        for x in (low, high):
            split = self.attempt(x)
            if split is not None:
                return split
        if self.tried[less] > self.tried[more]:
            less, more = more, less
        if not self.tried[more] > self.target > self.tried[less]:
            return None
        while True:
            x = _find_middle(less, more)
            if x in (less, more):  # three digits are used up
                return None
            split = self.attempt(x)
            if split is not None:
                return split
            if self.tried[x] > self.target:
                more = x
            else:
                less = x

    def is_outside(self) -> bool:
        """Return whether all values that were tried lie on one side of the target."""
        values = self.tried.values()
        return min(values) > self.target or max(values) < self.target

    def climb(self, low: float, high: float) -> FederatedSplit | None:
        """Return the first split near enough of whole numbers from `low` on.

        In steps that double, until the target is passed or the strategy cannot go on (no party
        holds more classes than there are); from there by halves.
        """
        near, far, step = int(low), int(high) + 1, 1
        split = self.attempt(near)
        is_above = self.tried[near] > self.target
        is_passed = False
        while split is None and far - near > 1:
            x = (near + far) // 2 if is_passed else min(near + step, far - 1)
            try:
                split = self.attempt(x)
            except UsageError:
                far, is_passed = x, True
                continue
            if (self.tried[x] > self.target) == is_above:
                near, step = x, 2 * step
            else:
                far, is_passed = x, True
        return split


def _find_middle(low: float, high: float) -> float:
    """Return the geometric mean to three digits."""
    return float(f"{np.sqrt(low * high):.{_DIGITS}g}")


def _describe_nearest(
    measure: str,
    target: float,
    tolerance: float,
    option: str,
    tried: dict[float, float],
) -> str:
    near = min(tried, key=lambda x: abs(tried[x] - target))
    return (
        f"{measure} {target} (the plain value) within {tolerance} was not reached: the nearest is "
        f"{tried[near]:.4f} "
        f"with {option} {near:g}, of values from {min(tried.values()):.4f} to "
        f"{max(tried.values()):.4f}; take another target, tolerance, seed or number of parties"
    )
