"""What is said of a study at its end, or as it is watched: how it stands, what failed and why."""

import json
import shlex
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ..terminal import say
from .board import StudyBoard, describe_standing

if TYPE_CHECKING:
    from fltrain.studies.folder.standing import StudyStanding
    from fltrain.studies.folder.study_folder import StudyFolder

_LOOK = 1.0  # seconds between two looks of --watch
_FAILURES = 5  # causes that are shown


def describe_again(
    study: "StudyFolder",
    engine: str = "local",
    options: Mapping[str, Any] | None = None,
    *,
    trust: bool = False,
) -> str:
    """Return the command that goes on with a study as this one does.

    options: of the engine, as they were given: a login node is no place to train on, and jobs
    without an account are refused. trust: whether code of the user's own is run, which a folder
    that names some is to be told again.
    """
    from fltrain.studies.folder.roster import read_cells

    words = ["fltrain", "study", str(study.path)]
    if engine != "local":
        words += ["--engine", engine]
    for name, value in (options or {}).items():
        words.append(f"--{name.replace('_', '-')}={value}")
    if trust and any(cell.own_code for cell in read_cells(study).values()):
        words.append("--trust")
    return shlex.join(words)


def report_end(
    study: "StudyFolder", standing: "StudyStanding", again: str, *, as_json: bool
) -> None:
    """Print what has come of a study. again: the command that goes on with it.

    click's exception, exit code 1, where cells failed or are left.
    """
    if as_json:
        say(json.dumps(standing.to_json() | {"folder": str(study.path)}))
    else:
        say(describe_standing(standing))
        say(f"study    {study.path}\ntable    fltrain table {shlex.quote(str(study.path))}")
        if standing.beyond:
            say(f"{standing.beyond} finished cells of earlier plans are not in this one; they stay")
    place = shlex.quote(str(study.path))
    if standing.lost:
        lost = f"{standing.lost} searches have no winner, since every setting of theirs diverged"
        say(f"{lost}: fltrain study {place} --tuning", err=as_json)
    if standing.count("failed"):
        raise click.ClickException("\n".join(_list_failures(standing, place, again)))
    left = standing.total - standing.ended
    if left:
        raise click.ClickException(
            f"{left} cells are left: their workers live, were cancelled, or they were begun where "
            f"other last bits are computed (--anywhere takes them); go on with: {again}"
        )


def _list_failures(standing: "StudyStanding", place: str, again: str) -> list[str]:
    """Return the lines that say what failed. place: of the study, as a shell takes it."""
    failed = [cell for cell in standing.cells if cell.state == "failed"]
    lines = [f"{len(failed)} cells failed; {again} --retry-failed tries them again"]
    lines += [f"{cell.name}: {cell.cause}" for cell in failed[:_FAILURES]]
    if len(failed) > _FAILURES:
        lines.append(f"and {len(failed) - _FAILURES} more")
    if any(cell.traceback for cell in failed):
        lines.append(f"tracebacks: fltrain study {place} --watch --json")
    if standing.stuck:
        lines.append(f"{standing.stuck} cells of winners wait for them")
    return lines


def watch_study(study: "StudyFolder", *, as_json: bool) -> None:
    """Show how a study stands until it is over, and what has come of it; as JSON once."""
    from fltrain.studies.folder.standing import StudyWatch

    watch = StudyWatch(study)
    standing = watch.look()
    if as_json:
        say(json.dumps(standing.to_json() | {"folder": str(study.path)}))
        return
    board = StudyBoard(says_end=False)
    board.show(standing, None)
    while not standing.is_over:
        time.sleep(_LOOK)
        standing = watch.look()
        board.show(standing, watch.estimate_left(standing))
    board.clear()
    report_end(study, standing, describe_again(study), as_json=False)
