"""The doors to studies: `study`, from a plan to its runs, and what the commands need of it."""

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import niidpart
from niidpart.data import Data
from niidpart.errors import UsageError
from niidpart.splits.recipe import JSON

from ..evidence.measures import METRIC, MeasureWords
from .cells.amounts import describe_bytes
from .cells.cell import StudyCell
from .cells.cell_requests import ResolvedCell
from .cells.estimate import (
    CellEstimate,
    StudyEstimate,
    estimate_cells,
    estimate_winners,
    sum_estimates,
)
from .cells.resolving import ResolvedPlan, resolve_plan
from .folder.beats import require_lease
from .folder.retries import allow_retries
from .folder.roster import read_cells
from .folder.standing import StudyStanding
from .folder.study_folder import StudyFolder, is_study, require_same_study
from .plans.asking import AskedPlan, ask_plan
from .plans.plan import StudyPlan
from .plans.plan_text import PlanText
from .work.directing import StudyDirector, find_engine

if TYPE_CHECKING:
    from ..evidence.api import EvidenceTable

_ROOM = 1.1  # of the disk that is estimated


@dataclass(frozen=True)
class PreparedStudy:
    """A plan whose cells are all known to be possible, and what they take.

    estimates: of each cell, in the order of `resolved.cells`. winners: the cells that come of
    searches, with the default values still.
    """

    plan: StudyPlan
    resolved: ResolvedPlan
    estimates: Sequence[CellEstimate]
    winners: Sequence[tuple[ResolvedCell, CellEstimate]] = ()

    @property
    def estimate(self) -> StudyEstimate:
        """Of all cells together, those of winners too."""
        return sum_estimates(*self.list_all())

    def list_all(
        self, left_out: Collection[str] = ()
    ) -> tuple[list[ResolvedCell], list[CellEstimate]]:
        """Return all cells and what each takes, those of winners last. left_out: names of some."""
        pairs = [*zip(self.resolved.cells, self.estimates, strict=True)]
        kept = [pair for pair in pairs if pair[0].cell.name not in left_out]
        kept += self.winners
        return [one for one, _ in kept], [took for _, took in kept]


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
    ) -> "list[EvidenceTable]":
        """Return a table for each group of the plan; docs/evidence.md says what is in it.

        Parameters
        ----------
        by : sequence of str
            Axes: "algorithm", "split", an option, a setting; () for all that vary but seeds.
        metric : str
        best : bool
            The best value of all rounds in place of the last.

        Returns
        -------
        list of EvidenceTable
        """
        # Which load scipy's statistics; a study is trained without.
        from ..evidence.api import TableRequest, make_tables
        from ..evidence.tables import TableAxes

        words = MeasureWords(show=("best",) if best else (), metrics=(metric,))
        request = TableRequest(axes=TableAxes(by=by), measures=words)
        return make_tables([self.folder], request)


def prepare_study(
    plan: str | Path | Mapping[str, Any] | PlanText | AskedPlan,
    load: Callable[..., Data] = niidpart.load,
) -> PreparedStudy:
    """Read a plan and try all that it asks for; nothing is written, nothing trained.

    load: what reads a data set; `load_or_stand_in` where it may be away.
    UsageError for whatever would be refused later.
    """
    asked = plan if isinstance(plan, AskedPlan) else ask_plan(plan)
    resolved = resolve_plan(asked.plan, asked.cells, asked.searches, load)
    estimates = estimate_cells(resolved.cells)
    winners = estimate_winners(resolved.searches, resolved.cells, estimates)
    return PreparedStudy(asked.plan, resolved, estimates, winners)


def write_study(prepared: PreparedStudy, out: Path) -> StudyFolder:
    """Make the folder of a study, or let the one that is there grow.

    UsageError where it is another study's, and where the disk has no room for what is to come.
    """
    each = zip(prepared.resolved.cells, prepared.estimates, strict=True)
    cells = [_state_estimate(one.cell, took).to_json() for one, took in each]
    if is_study(out):
        there = StudyFolder.open(out)
        stored = there.find_plan()
        # Of a study of which nothing is finished nothing is lost: whoever has mended the code that
        # all cells name gives the plan again.
        if stored is not None and there.places.list_done():
            require_same_study(stored, [cell["digest"] for cell in cells])
    # Before the folder is made: where there is no room none is left behind.
    _require_room(out, prepared)
    study = StudyFolder.create(out, prepared.plan.name)
    study.write_splits(prepared.resolved.splits)
    study.add_plan(prepared.plan.text.text, cells, _list_searches(prepared))
    return study


def _state_estimate(cell: StudyCell, took: CellEstimate) -> StudyCell:
    """Return a cell that says what it takes."""
    return replace(cell, seconds=took.seconds, memory=took.memory)


def _list_searches(prepared: PreparedStudy) -> list[JSON]:
    """Return the searches of a plan; what their winners' cells take stands in them."""
    estimates = iter([took for _, took in prepared.winners])
    searches = []
    for search in prepared.resolved.searches:
        finals = [_state_estimate(final, next(estimates)) for final in search.finals]
        searches.append(replace(search, finals=finals).to_json())
    return searches


def _require_room(out: Path, prepared: PreparedStudy) -> None:
    """Raise UsageError where what is to come does not fit on the disk."""
    study = StudyFolder(out)
    total = sum_estimates(*prepared.list_all(left_out=study.places.list_done()))
    free = study.measure_room()
    if total.disk * _ROOM > free:
        advice = "make room, or take another --out"
        if total.disk_of_last * _ROOM < free:
            needed = describe_bytes(total.disk_of_last)
            advice = f"keep = 'last' in [fixed] needs {needed}; else make room"
        raise UsageError(
            f"the checkpoints of {total.cells} cells take about {describe_bytes(total.disk)}, and "
            f"{out} has {describe_bytes(free)} left; {advice}"
        )


def study(
    plan: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    engine: str = "local",
    workers: int | None = None,
    retry_failed: bool = False,
    anywhere: bool = False,
    bundle: int | None = None,
    lease: float | None = None,
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
    bundle : int, optional
        The most small cells that a worker trains at once; None to leave it to facts
        (docs/studies.md).
    lease : float, optional
        Seconds without a sign of life until a worker of another machine counts as dead; None for
        60.
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
    find_engine(engine)  # before anything is read or written
    require_lease(lease)
    if not isinstance(plan, Mapping) and is_study(plan):
        opened = StudyFolder.open(Path(plan).resolve())
    else:
        prepared = prepare_study(plan)
        where = Path(out) if out is not None else Path("studies") / prepared.plan.name
        opened = write_study(prepared, where.resolve())
    if retry_failed:
        allow_retries(opened, list(read_cells(opened)))
    director = StudyDirector(
        study=opened,
        trust=trust,
        anywhere=anywhere,
        on_standing=lambda *_: None,
        on_news=lambda news: warnings.warn(news, stacklevel=4),
        bundle=bundle,
        lease=lease,
    )
    return Study(opened.path, director.run(engine, workers, options))
