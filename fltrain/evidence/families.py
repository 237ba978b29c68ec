"""Which rows of a table are compared, in which pairs, and over which splits they are ranked.

A family is the rows of one column whose runs share splits. Holm's correction is over its
comparisons; those of other columns are other families, unless one asks for all at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, NamedTuple

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean
from niidpart.wording import count_noun

from .comparing import AskedComparison, Comparison, JudgeRules, judge_comparisons, list_opponents
from .measures import RunMeasure
from .records import RunRecord
from .tables import TableBody, TableEntry, TableRow, describe_place, read_values

_NAMED = 3  # missing pairs that a refusal names

FamilyScope = Literal["column", "table"]


@dataclass(frozen=True)
class ComparisonWords:
    """Which comparisons are made.

    against: the row that all others are compared with; "" for each two. scope: whether a column's
    comparisons are corrected together, or all of the table.
    """

    rules: JudgeRules
    against: str = ""
    scope: FamilyScope = "column"


@dataclass(frozen=True)
class ComparisonFamily:
    """Comparisons that are corrected together.

    Parameters
    ----------
    column : str
        Where they stand; "" for a table of one column.
    measure : str
        The title of what is compared.
    level : float
    over : str
        What differs between pairs: "10 draws of split_seed, init_seed, order_seed".
    comparisons : sequence of Comparison
    size : int
        The comparisons that Holm corrects over: those of other columns too, where all of the table
        is one family.
    shared : str
        What its rows have in common and those of the column's other families have not, such as
        "beta=0.1"; "" for a column of one family.
    """

    column: str
    measure: str
    level: float
    over: str
    comparisons: Sequence[Comparison]
    size: int
    shared: str = ""

    @property
    def place(self) -> str:
        """Where it stands in its table, in words; "" for a table of one family."""
        return ", ".join(part for part in (self.column, self.shared) if part)


class _AskedFamily(NamedTuple):
    """A family before it is judged. column, shared: as of `ComparisonFamily`."""

    column: str
    shared: str
    records: Sequence[RunRecord]
    pairs: list[AskedComparison]


Draw = tuple[str, ...]  # the split first
DrawnValues = Mapping[Draw, float | None]  # by draw; None for a run without a value


def compare_rows(
    body: TableBody, measure: RunMeasure, words: ComparisonWords, failed_as: float | None
) -> list[ComparisonFamily]:
    """Compare the rows of each column that share splits.

    UsageError where nobody says whether more is better, or no two rows can be compared.
    """
    if measure.is_loss is None:
        raise UsageError(
            f"nobody says whether more or less of {measure.title} is better; "
            "give --better large or --better small"
        )
    wanted = words.rules.wanted
    if measure.is_share and wanted is not None and wanted >= 1:
        raise UsageError(
            f"the wanted difference is {wanted:g}, and {measure.title} is a share of at most 1; "
            f"{wanted:g} percentage points are {wanted / 100:g}"
        )
    _require_opponent(words.against, [row.label for row in body.rows])
    words = replace(words, rules=replace(words.rules, is_loss=measure.is_loss))
    asked: list[_AskedFamily] = []
    for place in range(len(body.columns)):
        asked += _ask_families(body, place, measure, words, failed_as)
    if not asked:
        raise UsageError(
            "no two rows have runs on the same split, so there are no pairs to compare; "
            "train them on one split file, and put what else differs into --columns"
        )
    n_asked = sum(len(family.pairs) for family in asked)
    judged = _judge_families([family.pairs for family in asked], words)
    return [
        ComparisonFamily(
            column=family.column,
            measure=measure.title,
            level=words.rules.level,
            over=_describe_draws(family.records),
            comparisons=comparisons,
            size=len(comparisons) if words.scope == "column" else n_asked,
            shared=family.shared,
        )
        for family, comparisons in zip(asked, judged, strict=True)
    ]


def _ask_families(
    body: TableBody,
    place: int,
    measure: RunMeasure,
    words: ComparisonWords,
    failed_as: float | None,
) -> list[_AskedFamily]:
    """Return the families of a column, which share no split with each other."""
    where = body.columns[place]
    groups = _list_comparable(body.rows, place)
    found = []
    for rows in groups:
        entries = {row.label: _require_entry(row, place) for row in rows}
        pairs = _ask_comparisons(entries, measure, words, failed_as)
        if pairs:
            column = describe_place(where) if where else ""
            shared = _describe_shared(rows, groups) if len(groups) > 1 else ""
            records = [one for entry in entries.values() for one in entry.records]
            found.append(_AskedFamily(column, shared, records, pairs))
    return found


def _describe_shared(rows: Sequence[TableRow], groups: Sequence[Sequence[TableRow]]) -> str:
    """Return on which axes rows agree where not all rows of all groups do."""
    everybody = [row for group in groups for row in group]
    shared = {}
    for axis, value in rows[0].where.items():
        is_alike = all(row.where.get(axis) == value for row in rows)
        is_everywhere = all(row.where.get(axis) == value for row in everybody)
        if is_alike and not is_everywhere:
            shared[axis] = value
    return describe_place(shared) if shared else ""


def _require_opponent(against: str, labels: Sequence[str]) -> None:
    if not against or against in labels:
        return
    longer = [label for label in labels if label.startswith(f"{against} ")]
    if len(longer) > 1:
        named = ", ".join(map(repr, longer))
        raise UsageError(
            f"{len(longer)} rows are of {against!r}: {named}; give the whole name of one of them, "
            "or take runs of one kind alone (--where), which are then called so"
        )
    raise UsageError(
        f"there is no row {against!r} to compare with; {did_you_mean(against, labels)}"
    )


def _list_comparable(rows: Sequence[TableRow], place: int) -> list[list[TableRow]]:
    """Return the rows of a column in groups that share splits; those alone are left out."""
    groups: list[tuple[set[str], list[TableRow]]] = []
    for row in rows:
        entry = row.entries[place]
        if entry is None:
            continue
        splits = {record.split for record in entry.records}
        # A row on splits of several groups makes one of them, whichever row comes first.
        shared = [group for group in groups if group[0] & splits]
        known = splits.union(*[group[0] for group in shared])
        members = [one for group in shared for one in group[1]]
        at = groups.index(shared[0]) if shared else len(groups)
        groups = [group for group in groups if group not in shared]
        groups.insert(at, (known, [*members, row]))
    return [_order_as(rows, members) for _, members in groups if len(members) > 1]


def _order_as(rows: Sequence[TableRow], members: Sequence[TableRow]) -> list[TableRow]:
    return [row for row in rows if any(row is member for member in members)]


def _require_entry(row: TableRow, place: int) -> TableEntry:
    entry = row.entries[place]
    assert entry is not None  # rows without one are in no group
    return entry


def _ask_comparisons(
    entries: Mapping[str, TableEntry],
    measure: RunMeasure,
    words: ComparisonWords,
    failed_as: float | None,
) -> list[AskedComparison]:
    if words.against and words.against not in entries:
        return []
    values = {
        label: _read_draws(entry.records, measure, failed_as) for label, entry in entries.items()
    }
    asked = []
    for a, b in list_opponents(list(entries), words.against):
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


def _judge_families(
    families: Sequence[Sequence[AskedComparison]], words: ComparisonWords
) -> list[list[Comparison]]:
    """Return the comparisons of each family, corrected within it or over all."""
    if words.scope == "column":
        return [judge_comparisons(pairs, words.rules) for pairs in families]
    judged = iter(judge_comparisons([one for pairs in families for one in pairs], words.rules))
    return [[next(judged) for _ in pairs] for pairs in families]


def _describe_draws(records: Sequence[RunRecord]) -> str:
    """Return what differs between the pairs of a family."""
    draws = {record.draw: record for record in records}
    varied = []
    for axis in ("split_seed", "init_seed", "order_seed"):
        if len({repr(one.where.get(axis)) for one in draws.values()}) > 1:
            varied.append(axis)
    splits = len({record.split for record in records})
    of_splits = "one split" if splits == 1 else f"{splits} splits"
    told = f"{count_noun(len(draws), 'draw')} of {', '.join(varied) or 'nothing'} on {of_splits}"
    return f"{told}, one pair a split" if 1 < splits < len(draws) else told


def list_left_out(body: TableBody, families: Sequence[ComparisonFamily]) -> list[str]:
    """Return a line for each row of a column that is compared with no other one."""
    lines = []
    for place, where in enumerate(body.columns):
        column = describe_place(where) if where else ""
        compared = {
            label
            for family in families
            if family.column == column
            for one in family.comparisons
            for label in (one.first, one.second)
        }
        alone = [row.label for row in body.rows if row.entries[place] is not None]
        alone = [label for label in alone if label not in compared]
        if alone:
            within = f"in {column}: " if column else ""
            named = "; ".join(alone[:_NAMED])
            more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
            lines.append(
                f"{within}compared with nothing, since they share no split with what is compared: "
                f"{named}{more}"
            )
    return lines
