"""Which rows of a table are compared, in which pairs, and over which splits they are ranked.

A family is the rows of one column whose runs share splits. Holm's correction is over its
comparisons; those of other columns are other families, unless one asks for all at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean
from niidpart.wording import count_noun

from .comparing import AskedComparison, Comparison, JudgeRules, judge_comparisons
from .drawn_pairs import ask_comparisons
from .measures import RunMeasure
from .records import RunRecord
from .tables import TableBody, TableEntry, TableRow, describe_place

_NAMED = 3  # rows that a line names

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
    labels = [row.label for row in body.rows]
    if len(labels) == 1:
        raise UsageError(
            f"{labels[0]} is the only row, so there is nothing to compare it with; "
            "a test takes two rows or more: give more runs, or other axes to --by and --where"
        )
    _require_opponent(words.against, labels)
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
        pairs = ask_comparisons(entries, measure, words.against, failed_as)
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
