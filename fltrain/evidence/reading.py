"""Runs and studies from the disk, as records."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from niidpart.disk.progress import tell
from niidpart.errors import UsageError
from niidpart.wording import count_noun

from ..disk.plain_folder import PlainFolder
from ..runs.comparison import list_config_differences
from ..runs.configuration import read_configuration
from ..runs.derived import Way, derive_values, parse_derived
from ..runs.ending import find_divergence
from ..runs.finding import find_runs, require_run_folder
from ..runs.folder import RunFolder
from ..runs.metric_names import History
from ..runs.metrics_log import MetricsLog
from ..runs.stopping import is_finished
from ..runs.trials import group_trials, list_comparable
from ..studies.cells.cell import StudyCell
from ..studies.cells.searches import Search, SearchResult
from ..studies.derived_values import derive_of_cells
from ..studies.folder.roster import Roster
from ..studies.folder.study_folder import StudyFolder, is_study
from .records import RUN_AXIS, SETTING_AXIS, RunRecord, RunState
from .split_draws import describe_pooling, pool_draws

_SEARCHED = ("algorithm", "split")  # the axes that say of what a search is


class RecordGroup(NamedTuple):
    """The runs of one table.

    study, name: "" for runs that are no study; place: its folder, "" likewise. derive: a word that
    is derived (`rounds:fedavg`) -> its values by name of run, one a round or one in all. notes:
    lines on the runs. differences: what else differs between them.
    """

    study: str
    name: str
    records: Sequence[RunRecord]
    derive: Callable[[str], Mapping[str, Sequence[float]]]
    notes: Sequence[str] = ()
    differences: Sequence[str] = ()
    place: str = ""


def read_groups(paths: Sequence[str | Path], *, each: bool = False) -> list[RecordGroup]:
    """Return a study's groups, or runs and sweeps as one group. each: as of `read_runs`.

    UsageError for a study beside other folders.
    """
    studies = [path for path in paths if is_study(path)]
    if not studies:
        return [read_runs(paths, each=each)]
    if len(paths) > 1:
        raise UsageError(
            f"{studies[0]} is a study, and {len(paths)} folders were given; give one study, "
            f"or runs alone, such as {studies[0]}/cells/*"
        )
    return read_study(StudyFolder.open(studies[0]))


def read_study(study: StudyFolder) -> list[RecordGroup]:
    """Return the cells of a study, a group for each group of its plan."""
    roster = Roster(study)
    cells = roster.list_rows()
    read = _read_cells(study, [cell.name for cell in cells])
    results = roster.list_results()
    groups: dict[str, list[StudyCell]] = {}
    for cell in cells:
        for name in cell.groups:
            groups.setdefault(name, []).append(cell)
    found = []
    for name, members in groups.items():
        records = [_describe_cell(cell, name, study, read) for cell in members]
        records += _list_pending(roster, name)
        finished = [cell for cell in members if cell.name in read.histories]
        searched = [one for one in results if name in one[0].finals[0].where]
        group = RecordGroup(
            study=study.name,
            name=name,
            records=records,
            derive=partial(_derive_in_study, study, finished, name),
            notes=_describe_searches(searched),
            place=str(study.path),
        )
        found.append(group)
    return found


class _ReadCells(NamedTuple):
    """What became of cells, by name: the metrics of those that are done, why others failed."""

    histories: Mapping[str, History]
    causes: Mapping[str, str]


def _read_cells(study: StudyFolder, names: Sequence[str]) -> _ReadCells:
    done = set(names) & study.places.list_done()
    histories = {}
    for name in sorted(done):
        place = study.places.find_cell(name)
        histories[name] = read_numbers(place)
        tell("runs", len(histories), len(done))
    causes = _list_causes(study, set(names) - done)
    return _ReadCells(histories, causes)


def _describe_cell(cell: StudyCell, group: str, study: StudyFolder, read: _ReadCells) -> RunRecord:
    """Return a cell as a run of a group."""
    name = cell.name
    state: RunState = "failed" if name in read.causes else "unfinished"
    folder = None
    if name in read.histories:
        state = "done"
        folder = study.places.find_cell(name)
    return RunRecord(
        name=name,
        where=cell.where[group] | {RUN_AXIS: name},
        split=cell.split,
        state=state,
        history=read.histories.get(name, ()),
        folder=folder,
        cause=read.causes.get(name, ""),
    )


def _list_pending(roster: Roster, group: str) -> list[RunRecord]:
    """Return the cells of a group's winners that are not known: a row without them is not whole."""
    records = []
    for cell, is_lost in roster.list_pending():
        if group not in cell.where:
            continue
        name = f"winner-of-{cell.name}"
        record = RunRecord(
            name=name,
            where=cell.where[group] | {RUN_AXIS: name},
            split=cell.split,
            state="failed" if is_lost else "unfinished",
            cause="every setting that was tried diverged" if is_lost else "",
        )
        records.append(record)
    return records


def _derive_in_study(
    study: StudyFolder, cells: Sequence[StudyCell], group: str, metric: str
) -> Mapping[str, Sequence[float]]:
    return derive_of_cells(study, cells, metric, group)


def _list_causes(study: StudyFolder, names: Iterable[str]) -> dict[str, str]:
    """Return why cells failed, by name; those that did not are left out."""
    causes = {}
    standings = study.claims.list_standings(sorted(names))
    for name, standing in standings.items():
        if standing.has_failed:
            end = study.claims.read_end(name, standing.number)
            cause = str(end.get("cause", ""))
            first, _, _ = cause.partition("\n")
            causes[name] = f"{end.get('kind')}: {first}"
    return causes


def _describe_searches(found: Iterable[tuple[Search, SearchResult]]) -> list[str]:
    """Return a line for each winner, which names all draws of a split that have the same one."""
    draws: dict[str, dict[str, None]] = {}
    for search, result in found:
        line = _describe_search(search, result)
        seeds = draws.setdefault(line, {})
        if "split_seed" in search.where:
            seed = str(search.where["split_seed"])
            seeds[seed] = None
    return [f"{line}{_name_split_seeds(seeds)}" for line, seeds in draws.items()]


def _name_split_seeds(seeds: Collection[str]) -> str:
    if not seeds:
        return ""
    word = "seed" if len(seeds) == 1 else "seeds"
    named = ", ".join(seeds)
    return f" (split {word} {named})"


def _describe_search(search: Search, result: SearchResult) -> str:
    """Return on what an algorithm was tuned, with how many settings, and what won."""
    named = [str(search.where[axis]) for axis in _SEARCHED if axis in search.where]
    where = " on ".join(named)
    settings = count_noun(len(search.points), "setting")
    runs = count_noun(len(search.runs[0]), "run")
    won = "all diverged"
    if result.chosen is not None:
        winner = result.tried[result.chosen]
        words = [f"{word}={value}" for word, value in winner.values.items()]
        won = ", ".join(words)
    return f"{where}: tuned by {search.metric}, {settings}, {runs} each: {won}"


def read_runs(paths: Sequence[str | Path], *, each: bool = False) -> RecordGroup:
    """Return runs, those of sweeps among them, as one group.

    A run with the seeds of another one of its setting is the same trial again: a line says so, and
    it is left out, unless each run is to be seen by itself.
    """
    names = find_runs(paths)
    folders = {name: RunFolder.open(name) for name in names}
    configs = {name: folder.config for name, folder in folders.items()}
    pooled = pool_draws(folders, configs)
    notes = describe_pooling(configs, pooled)
    records = []
    for trials in group_trials(pooled):
        taken = [*trials.runs]
        if each:
            taken += trials.repeats
        elif trials.repeats:
            repeats = ", ".join(trials.repeats)
            again = "of the same seeds as another run, and so no trial more"
            notes.append(f"{trials.label}: {again}: {repeats}")
        for name in taken:
            where = _describe_run(name, trials.label, pooled[name])
            record = _read_run(name, where, configs[name])
            records.append(record)
            tell("runs", len(records), len(names))
    return RecordGroup(
        study="",
        name="",
        records=records,
        derive=partial(_derive_of_runs, folders),
        notes=notes,
        differences=list_config_differences(pooled),
    )


def _read_run(name: str, where: Mapping[str, Any], config: Mapping[str, Any]) -> RunRecord:
    history = read_numbers(Path(name))
    state: RunState = "done" if is_finished(config, history) else "unfinished"
    cause = ""
    if state == "unfinished":
        cause = find_divergence(PlainFolder(Path(name)), len(history))
        state = "failed" if cause else state
    return RunRecord(
        name=name,
        where=where,
        split=config["split"],
        state=state,
        history=history,
        folder=Path(name),
        cause=cause,
        rounds_asked=config["settings"].get("rounds"),
    )


def _derive_of_runs(folders: Mapping[str, RunFolder], metric: str) -> Mapping[str, Sequence[float]]:
    asked = parse_derived(metric)
    is_relative = isinstance(asked, Way) and asked.is_relative
    if asked is None or is_relative:
        raise UsageError(
            f"{metric} holds runs against another algorithm's, which a study alone can pair; "
            "give a value to reach, such as rounds:accuracy=0.9"
        )
    return {name: derive_values(folder, asked) for name, folder in folders.items()}


def _describe_run(name: str, label: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a run on the axes, under the names that a study has for them."""
    algorithm = config["algorithm"]
    where = {
        RUN_AXIS: name,
        SETTING_AXIS: label,
        "algorithm": algorithm["name"],
        **algorithm["options"],
        **list_comparable(dict(config)),
    }
    seed = where.pop("seed")
    where["order_seed"] = seed
    if where["init_seed"] is None:
        where["init_seed"] = seed
    return where


def read_numbers(path: Path) -> History:
    """Return the metrics of a run, an empty list in place of each list.

    Of parties there may be thousands, and tables show what describes them.
    """
    require_run_folder(path)
    folder = PlainFolder(path)
    configuration = read_configuration(folder)
    log = MetricsLog(folder, configuration.start)
    return [_drop_lists(one.metrics) for one in log.read()]


def _drop_lists(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [] if isinstance(value, list) else value for name, value in metrics.items()}
