"""The pairs of two rows: runs of one draw, on one split with one seed, or why there are none."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from niidpart.wording import count_noun

from .comparing import AskedComparison, list_opponents
from .measures import RunMeasure
from .records import RunRecord
from .tables import TableEntry, read_values

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
    values = {
        label: _read_draws(entry.records, measure, failed_as) for label, entry in entries.items()
    }
    asked = []
    for a, b in list_opponents(list(entries), against):
        why_not = _explain_mixed(a, entries[a]) or _explain_mixed(b, entries[b])
        draws = list(dict.fromkeys([*values[a], *values[b]]))
        why_not = why_not or _explain_missing(a, b, entries, values)
        if why_not:
            asked.append(AskedComparison(a, b, why_not=why_not))
        else:
            first, second = [_read_blocks(draws, values[label]) for label in (a, b)]
            asked.append(AskedComparison(a, b, first, second))
    return asked


def _read_blocks(draws: Sequence[Draw], values: DrawnValues) -> list[float]:
    """Return a value for each draw on one split; on several splits the mean on each of them.

    Draws on one split share what is particular to it: five seeds on each of two splits say of
    splits what two pairs say, and not what ten do.
    """
    splits = list(dict.fromkeys(split for split, *_ in draws))
    if len(splits) == 1:
        return [values[draw] or 0.0 for draw in draws]
    return [fmean(values[draw] or 0.0 for draw in draws if draw[0] == split) for split in splits]


def _read_draws(
    records: Sequence[RunRecord], measure: RunMeasure, failed_as: float | None
) -> DrawnValues:
    found = read_values(records, measure, failed_as)
    return {record.draw: value for record, value in zip(records, found, strict=True)}


def _explain_mixed(label: str, entry: TableEntry) -> str:
    if not entry.mixed:
        return ""
    axes = ", ".join(entry.mixed)
    return f"runs of {label} differ in {axes}, not in seeds alone; put that into --by or --columns"


def _explain_missing(
    a: str, b: str, entries: Mapping[str, TableEntry], values: Mapping[str, DrawnValues]
) -> str:
    """Return which pairs are missing; "" where none is."""
    records = {one.draw: one for label in (a, b) for one in entries[label].records}
    missing = []
    for draw, record in records.items():
        without = [label for label in (a, b) if values[label].get(draw) is None]
        if without:
            told = [_describe_absence(label, draw, entries[label]) for label in without]
            missing.append(f"{record.describe_draw()} ({', '.join(told)})")
    if not missing:
        return ""
    named = "; ".join(missing[:_NAMED])
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return f"{len(missing)} of {count_noun(len(records), 'pair')} are missing: {named}{more}"


def _describe_absence(label: str, draw: tuple[str, ...], entry: TableEntry) -> str:
    """Return why a row has no value of a draw."""
    found = [record for record in entry.records if record.draw == draw]
    if not found:
        return f"no run of {label}"
    if found[0].state == "done":
        return f"{label} has no such value"
    return f"{label} {found[0].state}"
