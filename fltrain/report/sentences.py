"""What the tests of a family say, in sentences: claims, no evidence, and what could not be said."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from niidpart.wording import count_noun

from ..evidence.comparing import Comparison
from ..evidence.families import ComparisonFamily
from ..evidence.layout import write_number
from ..evidence.measures import RunMeasure

SentenceKind = Literal["claim", "none", "refused"]
MOST_SENTENCES = 400  # of a page; what is above is counted


@dataclass(frozen=True)
class Sentence:
    """A sentence, and whether it claims something."""

    kind: SentenceKind
    text: str


@dataclass(frozen=True)
class FamilyStory:
    """What a page says of a family.

    Parameters
    ----------
    head : str
        What was compared, in which pairs, by which test.
    sentences : sequence of Sentence
        Claims first.
    left_out : int
        Comparisons without a claim that the page has no room for.
    place : str
        Where they stand among others: a column, or what its rows share; "" for the only one.
    """

    head: str
    sentences: Sequence[Sentence]
    left_out: int
    place: str = ""


def tell_family(
    family: ComparisonFamily, measure: RunMeasure, most: int = MOST_SENTENCES
) -> FamilyStory:
    """Return a family in sentences. most: how many of them."""
    is_alone = family.size == 1
    said, without = [], []
    for one in family.comparisons:
        if one.better:
            claim = _tell_claim(one, measure, is_alone)
            said.append(Sentence("claim", claim))
        elif one.verdict == "none":
            without.append(one)
    said += _tell_refused(family)
    room = max(most - len(said), 0)
    for one in without[:room]:
        text = _tell_none(one, measure, is_alone)
        said.append(Sentence("none", text))
    left_out = len(without[room:])
    return FamilyStory(_tell_head(family), said, left_out, family.place)


def _tell_head(family: ComparisonFamily) -> str:
    place = f" in {family.place}" if family.place else ""
    compared = count_noun(len(family.comparisons), "comparison")
    head = f"{family.measure}{place}: {compared} in pairs of one split and one seed, {family.over}."
    if family.size == 1:
        return f"{head} Sign-flip test at {family.level:g}; one comparison needs no correction."
    corrected = f"with Holm's correction over all {family.size}"
    return f"{head} Sign-flip test, {corrected} at {family.level:g}."


def _tell_claim(one: Comparison, measure: RunMeasure, is_alone: bool) -> str:
    """Return a claim in a sentence. is_alone: whether it is the only comparison of its family."""
    found = one.statistics
    assert found is not None  # a claim rests on pairs
    by = _write_difference(abs(found.mean), measure)
    interval = _tell_interval(one, measure)
    before = "" if is_alone else f", {_write_p(found.p)} before"
    return (
        f"{one.better} is better than {one.worse}: {measure.title} differs by {by}{interval} over "
        f"{count_noun(found.n, 'pair')}; {_tell_p(one, is_alone)}{before}."
    )


def _tell_none(one: Comparison, measure: RunMeasure, is_alone: bool) -> str:
    found = one.statistics
    assert found is not None  # what could not be compared is refused
    if one.reason != "no evidence of a difference":
        return f"{one.first} and {one.second} are {one.reason}, of {found.n}."
    mean = _write_signed(found.mean, measure)
    interval = _tell_interval(one, measure)
    said = (
        f"No evidence of a difference between {one.first} and {one.second}: on average the first "
        f"has {mean}{interval} over {count_noun(found.n, 'pair')}; {_tell_p(one, is_alone)}."
    )
    if one.detectable is not None:
        seen = _write_difference(one.detectable, measure)
        said += f" A true difference of {seen} would have shown in 8 of 10 such studies."
    if one.pairs_for_wanted is not None:
        said += f" The wanted difference takes {count_noun(one.pairs_for_wanted, 'pair')}."
    return said


def _tell_refused(family: ComparisonFamily) -> list[Sentence]:
    """Return a sentence for each reason why nothing could be claimed."""
    reasons: dict[str, list[str]] = {}
    for one in family.comparisons:
        if one.verdict == "refused":
            named = reasons.setdefault(one.reason, [])
            named.append(f"{one.first} and {one.second}")
    said = []
    n = len(family.comparisons)
    for why, who in reasons.items():
        is_all = len(who) == n > 1
        on = "any two" if is_all else "; ".join(who)
        said.append(Sentence("refused", f"No claim can be made on {on}: {why}."))
    return said


def _tell_interval(one: Comparison, measure: RunMeasure) -> str:
    """Return the interval of the difference, of the better one less the other where one is."""
    found = one.statistics
    if found is None or found.interval is None:
        return ""
    low = found.interval.low
    high = found.interval.high
    if one.better and found.mean < 0:
        low, high = -high, -low
    ends = f"{write_number(measure, low)} to {write_number(measure, high)}"
    return f" (95 % interval {ends})"


def _tell_p(one: Comparison, is_alone: bool) -> str:
    corrected = "" if is_alone else " after Holm's correction"
    return f"p = {_write_p(one.p_holm)}{corrected}"


def _write_difference(value: float, measure: RunMeasure) -> str:
    words = write_number(measure, value)
    return f"{words} percentage points" if measure.is_share else words


def _write_signed(value: float, measure: RunMeasure) -> str:
    side = "less" if value < 0 else "more"
    return f"{_write_difference(abs(value), measure)} {side}"


def _write_p(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"
