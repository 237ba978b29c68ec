"""The doors to studies: `study`, from a plan to its runs, and what the commands need of it."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import niidpart
from niidpart.data import Data
from niidpart.errors import UsageError

from .cells import Resolved, resolve_cells
from .choice import choose_cells
from .claims import FAILED
from .directing import StudyDirector
from .estimate import (
    CellEstimate,
    StudyEstimate,
    describe_bytes,
    estimate_cells,
    sum_estimates,
)
from .expansion import expand_plan
from .folder import StudyFolder, is_study, require_same_study, write_text
from .plan import StudyPlan, read_plan
from .plan_text import PlanText, read_plan_text
from .standing import StudyStanding
from .table import METRIC, StudyTable, tabulate
from .worker import read_cells

_ROOM = 1.1  # of the disk that is estimated


@dataclass(frozen=True)
class PreparedStudy:
    """A plan whose cells are all known to be possible, and what they take.

    estimates: of each cell, in the order of `resolved.cells`.
    """

    plan: StudyPlan
    resolved: Resolved
    estimates: Sequence[CellEstimate]

    @property
    def estimate(self) -> StudyEstimate:
        """Of all cells together."""
        return sum_estimates(self.resolved.cells, self.estimates)


@dataclass(frozen=True)
class Study:
    """A study as `fltrain.study` leaves it.

    Attributes
    ----------
    folder : Path
    standing : StudyStanding
        What is done, and what failed.

    Examples
    --------
    >>> plan = {
    ...     "name": "one",
    ...     "algorithms": ["fedavg"],
    ...     "splits": [{"dataset": "digits", "n_parties": 5}],
    ...     "fixed": {"model": "linear", "rounds": 1, "local_epochs": 1},
    ... }
    >>> done = fltrain.study(plan, workers=1)
    >>> [(row.where, row.n) for row in done.table()[0].rows]
    [({'algorithm': 'fedavg'}, 1)]
    """

    folder: Path
    standing: StudyStanding

    def table(
        self, by: Sequence[str] = (), metric: str = METRIC, *, best: bool = False
    ) -> list[StudyTable]:
        """Return a table for each group of the plan.

        Parameters
        ----------
        by : sequence of str
            Axes: "algorithm", "split", an option, a setting; () for all that vary but seeds.
        metric : str
        best : bool
            The largest value of all rounds in place of the last.

        Returns
        -------
        list of StudyTable
        """
        opened = StudyFolder.open(self.folder)
        cells = list(read_cells(opened).values())
        return tabulate(opened, cells, by=by, metric=metric, best=best)


def prepare_study(
    plan: str | Path | Mapping[str, Any] | PlanText,
    only: Mapping[str, Sequence[str]] | None = None,
    load: Callable[..., Data] = niidpart.load,
) -> PreparedStudy:
    """Read a plan and try all that it asks for; nothing is written, nothing trained.

    only: values on axes, of which a cell must have one on each; others are left out.
    load: what reads a data set; `load_or_stand_in` where it may be away.
    UsageError for whatever would be refused later.
    """
    if isinstance(plan, PlanText):
        read = read_plan(plan)
    elif isinstance(plan, Mapping):
        read = read_plan(PlanText(values=plan, text=write_text(dict(plan))))
    else:
        read = read_plan(read_plan_text(Path(plan)), Path(plan).stem)
    resolved = resolve_cells(read, choose_cells(expand_plan(read), only or {}), load)
    return PreparedStudy(read, resolved, estimate_cells(resolved.cells))


def write_study(prepared: PreparedStudy, out: Path) -> StudyFolder:
    """Make the folder of a study, or let the one that is there grow.

    UsageError where it is another study's, and where the disk has no room for what is to come.
    """
    each = zip(prepared.resolved.cells, prepared.estimates, strict=True)
    cells = [replace(one.cell, seconds=took.seconds).to_json() for one, took in each]
    if is_study(out):
        stored = StudyFolder.open(out).find_plan()
        if stored is not None:
            require_same_study(stored, [cell["digest"] for cell in cells])
    study = StudyFolder.create(out, prepared.plan.name)
    _require_room(study, prepared)
    study.write_splits(prepared.resolved.splits)
    study.add_plan(prepared.plan.text.text, cells)
    return study


def _require_room(study: StudyFolder, prepared: PreparedStudy) -> None:
    """Raise UsageError where what is to come does not fit on the disk."""
    done = study.places.list_done()
    each = zip(prepared.resolved.cells, prepared.estimates, strict=True)
    left = [(one, estimate) for one, estimate in each if one.cell.name not in done]
    total = sum_estimates([one for one, _ in left], [estimate for _, estimate in left])
    free = study.measure_room()
    if total.disk * _ROOM > free:
        advice = "make room, or take another --out"
        if total.disk_of_last * _ROOM < free:
            needed = describe_bytes(total.disk_of_last)
            advice = f"keep = 'last' in [fixed] needs {needed}; else make room"
        raise UsageError(
            f"the checkpoints of {total.cells} cells take about {describe_bytes(total.disk)}, and "
            f"{study.path} has {describe_bytes(free)} left; {advice}"
        )


def allow_retries(study: StudyFolder, names: Sequence[str]) -> list[str]:
    """Let the failed cells be tried again. Return their names."""
    failed = []
    for name, standing in study.claims.list_standings(names).items():
        if standing.has_failed and study.claims.read_end(name, standing.number)["end"] == FAILED:
            study.claims.allow_retry(name, standing.number)
            failed.append(name)
    return failed


def study(
    plan: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    engine: str = "local",
    workers: int | None = None,
    retry_failed: bool = False,
    anywhere: bool = False,
    trust: bool = True,
    **options: Any,
) -> Study:
    """Train all cells of a plan, those that are not done yet.

    Parameters
    ----------
    plan : path or dict
        A file of TOML, or the same words as a dict; or the folder of a study, to go on with it.
    out : path, optional
        The folder of the study; None for `studies/NAME`.
    engine : str
        What starts the workers (docs/studies.md).
    workers : int, optional
        How many; None to leave it to the engine.
    retry_failed : bool
        Try cells again that have failed.
    anywhere : bool
        Take up runs that were begun where other last bits are computed.
    trust : bool
        Run the code outside fltrain that the plan names.
    **options
        Of the engine.

    Returns
    -------
    Study

    Raises
    ------
    UsageError
        For a plan that cannot be carried out, before anything is trained.

    Examples
    --------
    >>> plan = {
    ...     "name": "first",
    ...     "algorithms": ["fedavg", "solo"],
    ...     "splits": [{"dataset": "digits", "beta": [0.1, 0.5], "n_parties": 5}],
    ...     "fixed": {"model": "linear", "rounds": 1, "local_epochs": 1},
    ... }
    >>> done = study(plan, workers=1)
    >>> done.standing.count("done")
    4
    """
    if not isinstance(plan, Mapping) and is_study(plan):
        opened = StudyFolder.open(Path(plan).resolve())
    else:
        prepared = prepare_study(plan)
        where = Path(out) if out is not None else Path("studies") / prepared.plan.name
        opened = write_study(prepared, where.resolve())
    cells = read_cells(opened)
    if retry_failed:
        allow_retries(opened, list(cells))
    director = StudyDirector(
        study=opened,
        cells=cells,
        trust=trust,
        anywhere=anywhere,
        on_standing=lambda *_: None,
        on_news=lambda news: warnings.warn(news, stacklevel=4),
    )
    return Study(opened.path, director.run(engine, workers, options))
