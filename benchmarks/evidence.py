"""The tests of `fltrain table --test` on numbers whose truth is known: how often each is wrong.

    python benchmarks/evidence.py [--repetitions 2000] [--seed 0]

Prints a line for each case: what is counted, what it should be, and what came, with the limits
within which chance alone keeps a true share 99.9 times of 100. Nothing here trains.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fltrain.evidence.comparing import compare_in_pairs
from fltrain.evidence.intervals import compute_interval
from fltrain.evidence.power import count_pairs, find_detectable
from fltrain.evidence.ranking import rank_over_blocks
from fltrain.evidence.sign_flip import compute_sign_flip

LEVEL = 0.05
POWER = 0.8
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
# Laws of differences with mean 0; the last one is no null of the test, since it is not symmetric.
LAWS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "heavy tails (t, 2 degrees)": lambda rng, n: rng.standard_t(2, n),
    "accuracies of 200 rows": lambda rng, n: (
        rng.binomial(200, 0.9, n) / 200 - rng.binomial(200, 0.9, n) / 200
    ),
    "skewed (exponential less 1)": lambda rng, n: rng.exponential(1.0, n) - 1,
}
# Pairs, and comparisons of the family: of 1 algorithm with another, of 6, 8 and 40 with each other.
DESIGNS = (
    *[(n, 1) for n in (6, 10, 13, 20, 40)],
    *[(n, 15) for n in (10, 12, 13, 20, 40)],
    *[(n, 28) for n in (11, 13, 16, 24, 40)],
    *[(n, 780) for n in (15, 16, 20, 24, 40)],
)
SYMMETRIC = [name for name in LAWS if not name.startswith("skewed")]


@dataclass(frozen=True)
class Case:
    """Something that is counted. promise: "at most", "about" or "at least" a share; or ""."""

    name: str
    promise: str
    share: float
    happens: Callable[[np.random.Generator], bool]


def list_cases() -> Iterator[Case]:
    for law in LAWS:
        for n in (6, 10, 20):
            promise = "at most" if law in SYMMETRIC else ""
            yield Case(f"sign-flip claims, {law}, {n} pairs", promise, LEVEL, claim_one(law, n))
    for n in (10, 12):
        yield Case(f"any of 15 claims, {n} pairs, nothing differs", "at most", LEVEL, claim_any(n))
    for n, size in DESIGNS:
        name = f"sign-flip sees what is detectable, {n} pairs, {size} comparisons"
        yield Case(name, "about", POWER, see_detectable(n, LEVEL / size))
    for size in (1, 15, 28, 780):
        name = f"the pairs that are wanted see it, {size} comparisons"
        yield Case(name, "about", POWER, see_wanted(1.2, LEVEL / size))
    for law in ("normal", "skewed (exponential less 1)"):
        for n in (3, 5, 9, 10, 20, 40):
            promise = "about" if law == "normal" else ""
            yield Case(f"interval holds the mean, {law}, {n} values", promise, 0.95, hold(law, n))
    for k, blocks in ((3, 3), (4, 8), (6, 3), (6, 12)):
        name = f"Friedman claims, {k} algorithms on {blocks} splits"
        yield Case(name, "at most", LEVEL, claim_ranks(k, blocks))
        name = f"ranks differ by the critical difference, {k} on {blocks}"
        yield Case(name, "at most", LEVEL, claim_critical(k, blocks))


def claim_one(law: str, n: int) -> Callable[[np.random.Generator], bool]:
    return lambda rng: compute_sign_flip(LAWS[law](rng, n)) <= LEVEL


def claim_any(n: int) -> Callable[[np.random.Generator], bool]:
    """Six algorithms that differ by noise alone, on seeds whose luck they share."""

    def happens(rng: np.random.Generator) -> bool:
        luck = rng.standard_normal(n)
        values = {str(k): list(luck + rng.standard_normal(n)) for k in range(6)}
        return any(one.better for one in compare_in_pairs(values))

    return happens


def see_detectable(n: int, level: float) -> Callable[[np.random.Generator], bool]:
    def happens(rng: np.random.Generator) -> bool:
        effect = find_detectable(n, level, POWER)
        assert effect is not None
        return compute_sign_flip(effect + rng.standard_normal(n)) <= level

    return happens


def see_wanted(effect: float, level: float) -> Callable[[np.random.Generator], bool]:
    """A difference of so many deviations, with the pairs that are said to show it."""

    def happens(rng: np.random.Generator) -> bool:
        n, detectable = count_wanted(effect, level)
        return compute_sign_flip((detectable + rng.standard_normal(n)).tolist()) <= level

    return happens


@cache
def count_wanted(effect: float, level: float) -> tuple[int, float]:
    """Return the pairs that are said to show a difference, and what they see."""
    n = count_pairs(effect, level, POWER)
    assert n is not None
    # A pair is the least step: what these pairs see is a little below what is wanted.
    detectable = find_detectable(n, level, POWER)
    assert detectable is not None
    assert detectable <= effect
    return n, detectable


def hold(law: str, n: int) -> Callable[[np.random.Generator], bool]:
    def happens(rng: np.random.Generator) -> bool:
        found = compute_interval(LAWS[law](rng, n).tolist())
        return found is not None and found.low <= 0 <= found.high

    return happens


def claim_ranks(k: int, blocks: int) -> Callable[[np.random.Generator], bool]:
    return lambda rng: rank_over_blocks(draw_blocks(rng, k, blocks)).p <= LEVEL


def claim_critical(k: int, blocks: int) -> Callable[[np.random.Generator], bool]:
    def happens(rng: np.random.Generator) -> bool:
        found = rank_over_blocks(draw_blocks(rng, k, blocks))
        ranks = list(found.mean_ranks.values())
        return ranks[-1] - ranks[0] >= found.critical_difference

    return happens


def draw_blocks(rng: np.random.Generator, k: int, blocks: int) -> dict[str, list[float]]:
    of_splits = rng.standard_normal(blocks)
    return {str(one): list(of_splits + rng.standard_normal(blocks)) for one in range(k)}


def count_cases(case: Case, repetitions: int, seed: list[int]) -> int:
    """Return how often something happens."""
    rng = np.random.default_rng(seed)
    return sum(case.happens(rng) for _ in range(repetitions))


def bound_count(repetitions: int, share: float, chance: float = 0.001) -> tuple[int, int]:
    """Return within which counts chance keeps a share, but once in a thousand times."""
    law = stats.binom(repetitions, share)
    return int(law.ppf(chance / 2)), int(law.ppf(1 - chance / 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="Cases whose names have this in them.")
    asked = parser.parse_args()
    print("| what is counted | should be | came | chance allows |")
    print("| --- | --- | --- | --- |")
    for number, case in enumerate(list_cases()):
        if asked.only not in case.name:
            continue
        count = count_cases(case, asked.repetitions, [asked.seed, number])
        low, high = bound_count(asked.repetitions, case.share)
        n = asked.repetitions
        allowed = {
            "at most": f"to {100 * high / n:.1f} %",
            "about": f"{100 * low / n:.1f} to {100 * high / n:.1f} %",
            "": "-",
        }[case.promise]
        wanted = f"{case.promise} {100 * case.share:g} %" if case.promise else "not promised"
        print(f"| {case.name} | {wanted} | {100 * count / n:.1f} % | {allowed} |", flush=True)


if __name__ == "__main__":
    main()
