"""The door to the page of a study, or of runs."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from niidpart.page.assembling import PageContent, assemble_page
from niidpart.page.writing import prepare_page_path, write_page
from niidpart.report.api import TEMPLATES as SPLIT_TEMPLATES
from niidpart.report.make_command import join_command, name_place
from niidpart.report.skew_rows import place_on_scale
from niidpart.splits.recipe import JSON
from niidpart.wording import count_noun

from ..evidence.api import TableRequest
from ..evidence.comparing import JudgeRules
from ..evidence.families import ComparisonWords
from ..evidence.reading import read_groups
from ..evidence.records import RunRecord
from ..studies.folder.study_folder import StudyFolder, is_study
from .group_story import GroupStory, tell_group
from .page_runs import PageRun, read_page_runs
from .page_splits import SplitsStory, tell_splits
from .run_command import write_run_command
from .shown_plan import shorten_paths
from .surroundings import list_environments, list_shared_settings, sum_costs

_HERE = Path(__file__).parent
_SCRIPTS = ("curves.js", "parties.js")
_MOST_PLACES = 8
_MOST_COMMANDS = 50  # of runs that are no study
_SECTIONS = (
    ("asked", "Asked"),
    ("results", "Results"),
    ("tests", "Tests"),
    ("curves", "Curves"),
    ("parties", "Parties"),
    ("splits", "Splits"),
    ("failed", "Failures"),
    ("cost", "Cost"),
    ("environment", "Environment"),
    ("again", "Do it again"),
)


def make_report(
    paths: Sequence[str | Path], request: TableRequest | None = None, *, needs_tests: bool = False
) -> str:
    """Return a page on a study or on runs, as a text of HTML that is complete in itself.

    Parameters
    ----------
    paths : sequence of str or Path
        One study; or run folders and sweeps.
    request : TableRequest, optional
        Rows, columns and measures of the leaderboard, and how rows are compared.
    needs_tests : bool
        Whether tests that cannot be made are an error. Else the page says why there are none.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        As `make_tables` raises it: for an axis, a measure or a metric that there is not; a study in
        which nothing is done; a study beside other folders.

    Examples
    --------
    >>> run = fltrain.run(
    ...     niidpart.make(niidpart.load("digits"), n_parties=5),
    ...     model="linear",
    ...     rounds=1,
    ...     out="runs/told",
    ... )
    >>> page = make_report(["runs/told"])
    >>> "fltrain run" in page
    True
    """
    request = request or TableRequest(tests=ComparisonWords(JudgeRules()))
    groups = read_groups(paths)
    records = [record for group in groups for record in group.records]
    runs = read_page_runs(records)
    tell = partial(tell_group, runs=runs, needs_tests=needs_tests, n_groups=len(groups))
    stories = [tell(group, request=request) for group in groups]
    study = StudyFolder.open(paths[0]) if is_study(paths[0]) else None
    splits = tell_splits(records, study)
    told = {
        "groups": stories,
        "splits": splits,
        "n_cells": _count_states(records),
    }
    known = list(runs.values())
    content = PageContent(
        title=study.name if study else _name_runs(known),
        template="report.html",
        folders=[_HERE / "templates", SPLIT_TEMPLATES],
        values=told | _describe_study(study, paths) | _describe_runs(known, study),
        data=_describe_data(stories, splits),
        scripts=[_HERE / "assets" / name for name in _SCRIPTS],
        has_charts=True,
    )
    return assemble_page(content)


def write_report(
    paths: Sequence[str | Path],
    out: str | Path,
    request: TableRequest | None = None,
    *,
    needs_tests: bool = False,
) -> Path:
    """Write the page of a study or of runs, whole or not at all, and return where it is.

    Parameters
    ----------
    paths, request, needs_tests
        As `make_report` takes them.
    out : str or Path

    Returns
    -------
    Path

    Raises
    ------
    UsageError
        As of `make_report`, and where `out` does not end in .html.
    """
    prepare_page_path(out)  # before the work
    return write_page(out, make_report(paths, request, needs_tests=needs_tests))


def _describe_study(study: StudyFolder | None, paths: Sequence[str | Path]) -> dict[str, Any]:
    """Return what was asked: the plan of a study, and what the page is of."""
    places = [name_place(str(path)) for path in paths]
    words = join_command(places[:_MOST_PLACES])
    if len(places) > _MOST_PLACES:
        words += " ..."
    plan = "" if study is None else study.read_plan().text
    shown = shorten_paths(plan)
    # A plan that Python handed over is kept as JSON, which no TOML begins like.
    is_json = plan.startswith("{")
    return {
        "places": places,
        "words": words,
        "plan": shown,
        "is_study": study is not None,
        "is_toml": bool(plan) and not is_json,
        "is_shortened": shown != plan,
    }


def _describe_runs(runs: Sequence[PageRun], study: StudyFolder | None) -> dict[str, Any]:
    """Return what all runs have in common; of runs that are no study also their commands."""
    again = runs if study is None else []
    commands = _list_commands(again)
    return {
        "sections": _SECTIONS,
        "place_on_scale": place_on_scale,
        "settings": list_shared_settings(runs),
        "environment": list_environments(runs),
        "costs": sum_costs(runs),
        "commands": commands,
        "n_commands_left": len(again) - len(commands),
    }


def _list_commands(runs: Sequence[PageRun]) -> list[str]:
    commands = []
    for run in runs[:_MOST_COMMANDS]:
        digest = run.config["split"]
        split_file = f"{digest[:12]}.h5"
        out = f"again/{run.folder.name}"
        commands.append(write_run_command(run.config, split_file, out))
    return commands


def _count_states(records: Sequence[RunRecord]) -> dict[str, int]:
    """Return how many runs are done, failed and not finished; one of two groups counts once."""
    states = {record.name: record.state for record in records}
    counted = Counter(states.values())
    return {
        "done": counted["done"],
        "failed": counted["failed"],
        "unfinished": counted["unfinished"],
    }


def _name_runs(runs: Sequence[PageRun]) -> str:
    if len(runs) == 1:
        return f"Run {runs[0].folder.name}"
    return count_noun(len(runs), "run")


def _describe_data(stories: Sequence[GroupStory], splits: SplitsStory) -> JSON:
    return {"groups": [story.data for story in stories], "sizes": dict(splits.sizes)}
