"""What the page of reproduced tables reads of a packed study: its runs, and its tables."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reproduce import find_packed

from fltrain.runs.folder import RunFolder
from fltrain.studies.folder.roster import Roster
from fltrain.studies.folder.study_folder import StudyFolder
from fltrain.studies.packing.study_packing import open_study
from fltrain.studies.papers.paper_table import BesideRow, BesideTable, set_beside


class FinishedRun(NamedTuple):
    """A finished cell. where: its values on the axes. last: what was measured after its last round."""

    name: str
    where: Mapping[str, Any]
    split: str
    config: Mapping[str, Any]
    environment: Mapping[str, Any]
    last: Mapping[str, Any]
    state: str
    cpu: float


class PackedWork(NamedTuple):
    """A work of which something is packed. failed: why a cell ended without a number, by which."""

    work: Mapping[str, Any]
    asked: int
    runs: Sequence[FinishedRun]
    tables: Sequence[BesideTable]
    failed: Mapping[str, str]


def read_work(work: Mapping[str, Any]) -> PackedWork:
    """Return what has been packed of a work."""
    with open_study(find_packed(work["name"])) as folder:
        study = StudyFolder.open(folder)
        return PackedWork(
            work=work,
            asked=len(Roster(study).list_cells()),
            runs=read_runs(study),
            tables=set_beside(study, partial=True),
            failed=read_failed(study),
        )


def read_failed(study: StudyFolder) -> dict[str, str]:
    """Return why cells failed, by what they are: a packed study keeps those that diverged."""
    rows = Roster(study).list_rows()
    standings = study.claims.list_standings(row.name for row in rows)
    failed = {}
    for row in rows:
        standing = standings[row.name]
        if not standing.has_failed:
            continue
        end = study.claims.read_end(row.name, standing.number)
        (where,) = row.where.values()
        named = " ".join(str(where[axis]) for axis in ("split", "algorithm", "mu") if axis in where)
        # What follows is said to whoever trains it.
        why = str(end["cause"]).partition("\n")[0].partition(", since")[0]
        failed[f"{named}, seed {where['split_seed']}"] = why
    return failed


def read_runs(study: StudyFolder) -> list[FinishedRun]:
    """Return the finished cells of a study, by their seeds."""
    done = study.places.list_done()
    kinds = study.claims.list_kinds()
    runs = []
    for cell in Roster(study).list_rows():
        if cell.name not in done:
            continue
        folder = RunFolder.open(study.places.find_cell(cell.name))
        logged = folder.metrics_log.read()
        (where,) = cell.where.values()
        run = FinishedRun(
            name=cell.name,
            where=where,
            split=cell.split,
            config=folder.config,
            environment=folder.environment,
            last=logged[-1].metrics,
            state=logged[-1].chain,
            cpu=study.claims.find_done(cell.name, kinds.get(cell.name, {})).get("cpu", 0.0),
        )
        runs.append(run)
    return sorted(runs, key=lambda run: run.where["split_seed"])


def list_at(runs: Sequence[FinishedRun], where: Mapping[str, Any]) -> list[FinishedRun]:
    """Return the runs that have some values on some axes."""
    return [
        run
        for run in runs
        if all(str(run.where.get(axis)) == str(value) for axis, value in where.items())
    ]


def list_chosen(
    runs: Sequence[FinishedRun], row: BesideRow, table: BesideTable
) -> list[FinishedRun]:
    """Return the runs of a number that a paper prints: of a grid those of the best value."""
    where = dict(row.where)
    if row.chosen is not None:
        where[table.best_of] = row.chosen
    return list_at(runs, where)


def place_row(row: BesideRow) -> str:
    """Return where a row stands, but for its algorithm."""
    return " ".join(str(value) for axis, value in row.where.items() if axis != "algorithm")
