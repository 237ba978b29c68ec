"""All that a page says of one group of a study, or of some runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from niidpart.errors import UsageError
from niidpart.splits.recipe import JSON
from niidpart.wording import count_noun

from ..evidence.api import EvidenceTable, TableRequest, make_table
from ..evidence.measures import MeasureWords
from ..evidence.ranking import Ranking
from ..evidence.reading import RecordGroup
from ..evidence.records import RunRecord, RunState
from .board import INTERVAL, Board, build_board, leave_out
from .curve_data import MOST_NUMBERS, CurveRow, describe_curves
from .page_runs import PageRuns, choose_runs
from .party_data import MOST_PARTIES, describe_parties
from .sentences import MOST_SENTENCES, FamilyStory, tell_family

_COSTS = MeasureWords(show=("rounds", "mb", "seconds"))
_NAMED = 8  # metrics that a line names


@dataclass(frozen=True)
class GroupStory:
    """What a page says of a group.

    Parameters
    ----------
    name : str
        "" for runs that are no study.
    board, costs : Board
    families : sequence of FamilyStory
    why_no_tests : str
    ranking : Ranking or None
    notes : sequence of str
        What failed, what is missing, what the page has no room for.
    failed, unfinished : sequence of RunRecord
    n_done : int
    data : dict
        Curves and parties, for scripts.
    """

    name: str
    board: Board
    costs: Board
    families: Sequence[FamilyStory]
    why_no_tests: str
    ranking: Ranking | None
    notes: Sequence[str]
    failed: Sequence[RunRecord]
    unfinished: Sequence[RunRecord]
    n_done: int
    data: JSON


def tell_group(
    group: RecordGroup, runs: PageRuns, request: TableRequest, *, needs_tests: bool, n_groups: int
) -> GroupStory:
    """Return what a page says of a group. UsageError as of `make_tables`.

    needs_tests: whether tests that cannot be made are an error. n_groups: of the page, which share
    its room.
    """
    table, why_no_tests = _judge(group, request, needs_tests=needs_tests)
    rows = _list_curve_rows(table, runs)
    curves, more_metrics = describe_curves(rows, MOST_NUMBERS // n_groups)
    parties, more_parties = describe_parties(rows, MOST_PARTIES // n_groups)
    title = group.name or "runs"
    costs = build_board(_tell_costs(group, request), title)
    states = _sort_by_state(table)
    no_room = _note_room(more_metrics, more_parties)
    data = {
        "name": title,
        "parties": parties,
        "best": _rank(table),
    }
    return GroupStory(
        name=group.name,
        board=build_board(table, title),
        costs=leave_out(costs, INTERVAL),
        families=_tell_families(table, n_groups),
        why_no_tests=why_no_tests,
        ranking=table.ranking,
        notes=[*table.notes, *table.differences, *no_room],
        failed=states["failed"],
        unfinished=states["unfinished"],
        n_done=len(states["done"]),
        data=data | curves,
    )


def _tell_families(table: EvidenceTable, n_groups: int) -> list[FamilyStory]:
    """Return the tests of a table in words, as many as its part of the page has room for."""
    measure = table.measures[0]
    n_families = len(table.families)
    n_shares = max(n_groups * n_families, 1)
    most = MOST_SENTENCES // n_shares
    stories = []
    for family in table.families:
        story = tell_family(family, measure, most)
        stories.append(story)
    return stories


def _sort_by_state(table: EvidenceTable) -> dict[RunState, list[RunRecord]]:
    """Return the runs of a table by what became of them."""
    states: dict[RunState, list[RunRecord]] = {
        "done": [],
        "failed": [],
        "unfinished": [],
    }
    for placed in table.body.list_entries():
        for record in placed.entry.records:
            states[record.state].append(record)
    return states


def _judge(
    group: RecordGroup, request: TableRequest, *, needs_tests: bool
) -> tuple[EvidenceTable, str]:
    """Return the table with its tests, or without them and why."""
    plain = replace(request, tests=None)
    if needs_tests:
        return make_table(group, request), ""
    without = make_table(group, plain)  # what is asked wrongly is told here
    if len(without.rows) < 2 or request.tests is None:
        return without, "there is one row alone, and so nothing to compare it with"
    try:
        return make_table(group, request), ""
    except UsageError as error:
        return without, str(error)


def _tell_costs(group: RecordGroup, request: TableRequest) -> EvidenceTable:
    return make_table(group, replace(request, measures=_COSTS, tests=None))


def _list_curve_rows(table: EvidenceTable, runs: PageRuns) -> list[CurveRow]:
    """Return a curve for each row and column of a table."""
    rows = []
    for placed in table.body.list_entries():
        held = choose_runs(runs, placed.entry.records)
        rows.append(CurveRow(placed.label, held))
    return rows


def _rank(table: EvidenceTable) -> list[int]:
    """Return the numbers of the curves, the best by the first measure first: which a page draws."""
    measure = table.measures[0]
    known, unknown = [], []
    for place, placed in enumerate(table.body.list_entries()):
        mean = placed.entry.values[measure.title].mean
        if mean is None:
            unknown.append(place)
        else:
            known.append((mean, place))
    known.sort(key=lambda one: one[0], reverse=not measure.is_loss)
    ranked = [place for _, place in known]
    return [*ranked, *unknown]


def _note_room(metrics: Sequence[str], n_runs: int) -> list[str]:
    notes = []
    if metrics:
        named = ", ".join(metrics[:_NAMED])
        more = ", ..." if len(metrics) > _NAMED else ""
        notes.append(
            f"no room on the page for the curves of {named}{more}; fltrain figure curves draws them"
        )
    if n_runs:
        left_out = count_noun(n_runs, "run")
        notes.append(f"no room on the page for the parties of {left_out}; metrics.jsonl has all")
    return notes
