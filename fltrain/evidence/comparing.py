"""Comparisons of a family: claimed, without evidence, or unable to show any.

Claims are made by the sign-flip test with Holm's correction over all that was compared. Wilcoxon's
test stands beside it; to take whichever of two has the smaller p would be two chances for one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from niidpart.errors import UsageError
from niidpart.wording import count_noun

from .pairs import PairStatistics, measure_pairs
from .power import count_pairs, find_detectable
from .sign_flip import count_least_pairs, find_least_p

__all__ = [
    "AskedComparison",
    "Comparison",
    "JudgeRules",
    "compare_in_pairs",
    "judge_comparisons",
]

LEVEL = 0.05

ClaimKind = Literal["first", "second", "none", "refused"]


@dataclass(frozen=True)
class AskedComparison:
    """Two algorithms, and their values in pairs; or why there are none.

    why_not: "" where there are pairs.
    """

    first: str
    second: str
    a: Sequence[float] = ()
    b: Sequence[float] = ()
    why_not: str = ""


@dataclass(frozen=True)
class Comparison:
    """What is claimed of two algorithms.

    Parameters
    ----------
    first, second : str
    verdict : str
        "first" or "second": that one is better. "none": no evidence of a difference. "refused":
        no claim could have come of it.
    reason : str
        Why it is refused, or what was not seen; "" for a claim.
    statistics : PairStatistics or None
        None where there are no pairs.
    p_holm, p_wilcoxon_holm : float or None
        Corrected over the family.
    detectable : float or None
        The smallest mean difference that so many pairs would have shown in 8 of 10 cases, where
        differences spread as these do; None where no difference could have shown.
    needed : int or None
        For a refusal: the pairs from which on a claim can be made at all.
    pairs_for_wanted : int or None
        The pairs that would show the wanted difference in 8 of 10 cases.
    reachable : float or None
        The level that Holm asks of this comparison, beside what the others came to: its p counts
        where it is at most that. The level of the family over those that are not claimed but for
        this one.
    """

    first: str
    second: str
    verdict: ClaimKind
    reason: str
    statistics: PairStatistics | None
    p_holm: float | None = None
    p_wilcoxon_holm: float | None = None
    detectable: float | None = None
    needed: int | None = None
    pairs_for_wanted: int | None = None
    reachable: float | None = None

    @property
    def better(self) -> str:
        """Which of them is claimed to be better; "" for none."""
        return {"first": self.first, "second": self.second}.get(self.verdict, "")


@dataclass(frozen=True)
class JudgeRules:
    """What a family is judged by.

    Parameters
    ----------
    level : float
        How often one claim or more of the family may be wrong where nothing differs.
    is_loss : bool
        Whether less is better.
    wanted : float or None
        A difference of interest, for which the number of pairs is told.
    """

    level: float = LEVEL
    is_loss: bool = False
    wanted: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise UsageError(f"the level is {self.level}; it must be between 0 and 1, such as 0.05")
        if self.wanted is not None and not self.wanted > 0:
            raise UsageError(f"the wanted difference is {self.wanted}; it must be above 0")


def judge_comparisons(
    asked: Sequence[AskedComparison], rules: JudgeRules | None = None
) -> list[Comparison]:
    """Return what can be claimed of a family of comparisons, corrected over all of them.

    Parameters
    ----------
    asked : sequence of AskedComparison
        Those without pairs count for the correction like the others.
    rules : JudgeRules, optional

    Returns
    -------
    list of Comparison

    Examples
    --------
    >>> accuracies = {"ours": [0.91, 0.92, 0.93, 0.95, 0.96], "theirs": [0.9] * 5}
    >>> asked = [AskedComparison("ours", "theirs", *accuracies.values())]
    >>> (found,) = judge_comparisons(asked)
    >>> found.verdict, found.needed
    ('refused', 6)
    """
    rules = rules or JudgeRules()
    measured = [None if one.why_not else measure_pairs(one.a, one.b) for one in asked]
    # What could not be compared was asked all the same, and takes its share of the level.
    p = [1.0 if one is None else one.p for one in measured]
    p_holm = correct_by_holm(p)
    p_wilcoxon = correct_by_holm([1.0 if one is None else one.p_wilcoxon for one in measured])
    reachable = _list_reachable(p, rules.level)
    found = []
    for place, (one, statistics) in enumerate(zip(asked, measured, strict=True)):
        if statistics is None:
            found.append(Comparison(one.first, one.second, "refused", one.why_not, None))
            continue
        standing = _Standing(
            p_holm=p_holm[place],
            p_wilcoxon_holm=p_wilcoxon[place],
            n_open=reachable[place],
            size=len(asked),
        )
        found.append(_judge(one, statistics, standing, rules))
    return found


class _Standing(NamedTuple):
    """A comparison within its family of `size`.

    n_open: over how many comparisons the level is shared when this one's turn comes, if it has the
    largest p of those that are claimed.
    """

    p_holm: float
    p_wilcoxon_holm: float
    n_open: int
    size: int


def compare_in_pairs(
    values: Mapping[str, Sequence[float]], *, against: str = "", rules: JudgeRules | None = None
) -> list[Comparison]:
    """Compare algorithms whose values come in pairs: all with each other, or all with one.

    Parameters
    ----------
    values : mapping of str to sequence of float
        Of each algorithm, in one order: what stands at one place shares split and seeds.
    against : str
        The one that all others are compared with; "" for all pairs.
    rules : JudgeRules, optional

    Returns
    -------
    list of Comparison

    Raises
    ------
    UsageError
        Where the lists are of different lengths.

    Examples
    --------
    >>> ours, theirs = [0.91, 0.92, 0.93, 0.95, 0.96, 0.97], [0.9, 0.9, 0.9, 0.9, 0.9, 0.9]
    >>> (found,) = compare_in_pairs({"ours": ours, "theirs": theirs})
    >>> found.better, found.p_holm
    ('ours', 0.03125)
    """
    names = list_opponents(list(values), against)
    asked = [AskedComparison(a, b, values[a], values[b]) for a, b in names]
    return judge_comparisons(asked, rules)


def list_opponents(names: Sequence[str], against: str = "") -> list[tuple[str, str]]:
    """Return who is compared with whom: each two in order, or each with the one that is named."""
    if against and against not in names:
        raise UsageError(f"there is no {against!r} to compare with; there are: {', '.join(names)}")
    if against:
        return [(name, against) for name in names if name != against]
    return [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]


def correct_by_holm(p_values: Sequence[float]) -> list[float]:
    """Return p values after Holm's correction over all of them.

    As `multipletests` of statsmodels does, which has Python look through all of its memory at each
    call: that took longer than the tables of a study.
    """
    size = len(p_values)
    corrected = [0.0] * size
    largest = 0.0
    ordered = sorted(range(size), key=lambda place: p_values[place])
    for n_before, place in enumerate(ordered):
        shared = p_values[place] * (size - n_before)
        largest = max(largest, min(shared, 1.0))
        corrected[place] = largest
    return corrected


def _list_reachable(p_values: Sequence[float], level: float) -> list[int]:
    """Return for each comparison over how many Holm shares the level when it is asked last.

    Those with smaller p that are claimed before it leave the family.
    """
    ordered = sorted(range(len(p_values)), key=lambda place: p_values[place])
    counts = [0] * len(p_values)
    for place in ordered:
        n_open = len(p_values)
        for other in ordered:
            if other == place:
                continue
            if p_values[other] > level / n_open:
                break
            n_open -= 1
        counts[place] = n_open
    return counts


def _judge(
    asked: AskedComparison, found: PairStatistics, standing: _Standing, rules: JudgeRules
) -> Comparison:
    """Return what is claimed of two algorithms, one comparison of a family."""
    level = rules.level / standing.n_open
    is_claimed = standing.p_holm <= rules.level
    is_refused = not is_claimed and find_least_p(found.n) > level
    spread = found.deviation or 0.0
    detectable = find_detectable(found.n, level) if spread else None
    wanted = None
    if rules.wanted is not None and spread:
        wanted = count_pairs(rules.wanted / spread, level)
    verdict: ClaimKind = "none"
    if is_refused:
        verdict = "refused"
    elif is_claimed:
        verdict = "second" if (found.mean > 0) == rules.is_loss else "first"
    return Comparison(
        first=asked.first,
        second=asked.second,
        verdict=verdict,
        reason=_explain(found, verdict, level, standing),
        statistics=found,
        p_holm=standing.p_holm,
        p_wilcoxon_holm=standing.p_wilcoxon_holm,
        detectable=None if detectable is None else detectable * spread,
        needed=count_least_pairs(level) if is_refused else None,
        pairs_for_wanted=wanted,
        reachable=level,
    )


def _explain(found: PairStatistics, verdict: ClaimKind, level: float, standing: _Standing) -> str:
    if verdict == "none" and not found.deviation and not found.mean:
        return "equal in every pair"
    if verdict == "none":
        return "no evidence of a difference"
    if verdict != "refused":
        return ""
    n_claimed = standing.size - standing.n_open
    family = f"one of {standing.size} comparisons" if standing.size > 1 else "the test"
    beside = f", {n_claimed} of them claimed," if n_claimed else ""
    pairs = f"{count_noun(found.n, 'pair')} {'gives' if found.n == 1 else 'give'}"
    least = f"{pairs} no p below {find_least_p(found.n):.4g}"
    told = f"{least}, and {family}{beside} needs {level:.2g}"
    return f"{told}: it takes {count_noun(count_least_pairs(level), 'pair')}"
