"""The pairs of two rows: runs of one draw, on one split with one seed, or why there are none."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from niidpart.wording import count_noun

from .comparing import AskedComparison, list_opponents
from .measures import RunMeasure
from .records import RunRecord
from .tables import TableEntry
from .trial_values import read_values

_NAMED = 3  # missing pairs that a refusal names

Draw = tuple[str, ...]  # the split first
DrawnValues = Mapping[Draw, float | None]  # by draw; None for a run without a value


def ask_comparisons(
    entries: Mapping[str, TableEntry],
    measure: RunMeasure,
    against: str,
    failed_as: float | None,
) -> list[AskedComparison]:
    """Return the comparisons of some entries by their labels, each two or all with one.

    against: as of `ComparisonWords`; where it is none of them there are no comparisons.
    """
    if against and against not in entries:
        return []
    values = {}
    for label, entry in entries.items():
        values[label] = _read_draws(entry.records, measure, failed_as)
    asked = []
    for a, b in list_opponents(list(entries), against):
        why_not = _explain_mixed(a, entries[a])
        why_not = why_not or _explain_mixed(b, entries[b])
        why_not = why_not or _explain_missing(a, b, entries, values)
        if why_not:
            asked.append(AskedComparison(a, b, why_not=why_not))
            continue
        draws = list(dict.fromkeys([*values[a], *values[b]]))
        first = _read_blocks(draws, values[a])
        second = _read_blocks(draws, values[b])
        asked.append(AskedComparison(a, b, first, second))
    return asked


def _read_blocks(draws: Sequence[Draw], values: DrawnValues) -> list[float]:
    """Return a value for each draw on one split; on several splits the mean on each of them.

    Draws on one split share what is particular to it: five seeds on each of two splits say of
    splits what two pairs say, and not what ten do.
    """
    by_split: dict[str, list[float]] = {}
    for draw in draws:
        split, *_ = draw
        value = values[draw] or 0.0
        by_split.setdefault(split, []).append(value)
    blocks = list(by_split.values())
    if len(blocks) == 1:
        return blocks[0]
    return [fmean(block) for block in blocks]


def _read_draws(
    records: Sequence[RunRecord], measure: RunMeasure, failed_as: float | None
) -> DrawnValues:
    found = read_values(records, measure, failed_as)
    draws = [record.draw for record in records]
    return dict(zip(draws, found, strict=True))


def _explain_mixed(label: str, entry: TableEntry) -> str:
    if not entry.mixed:
        return ""
    axes = ", ".join(entry.mixed)
    return f"runs of {label} differ in {axes}, not in seeds alone; put that into --by or --columns"


def _explain_missing(
    a: str, b: str, entries: Mapping[str, TableEntry], values: Mapping[str, DrawnValues]
) -> str:
    """Return which pairs are missing; "" where none is."""
    records: dict[Draw, RunRecord] = {}
    for label in (a, b):
        records |= {record.draw: record for record in entries[label].records}
    missing = []
    for draw, record in records.items():
        without = [label for label in (a, b) if values[label].get(draw) is None]
        if not without:
            continue
        absent = [_describe_absence(label, draw, entries[label]) for label in without]
        named = ", ".join(absent)
        missing.append(f"{record.describe_draw()} ({named})")
    if not missing:
        return ""
    told = "; ".join(missing[:_NAMED])
    n_more = len(missing) - _NAMED
    more = f" and {n_more} more" if n_more > 0 else ""
    return f"{len(missing)} of {count_noun(len(records), 'pair')} are missing: {told}{more}"


def _describe_absence(label: str, draw: tuple[str, ...], entry: TableEntry) -> str:
    """Return why a row has no value of a draw."""
    for record in entry.records:
        if record.draw != draw:
            continue
        if record.state == "done":
            return f"{label} has no such value"
        return f"{label} {record.state}"
    return f"no run of {label}"
