"""`fltrain verify`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from niidpart.wording import count_noun

from ..command import AdvisingCommand
from ..options import declare_data_memory
from ..terminal import say
from .options import declare_moved_data, declare_trust
from .progress import Bar

if TYPE_CHECKING:
    from fltrain import RunVerdict


def verify_command() -> click.Command:
    return AdvisingCommand(
        "verify",
        callback=click.pass_context(verify),
        help="Check every digest of a run folder, or of all in a sweep or a study: which file and "
        "which round is not as it was written. With --replay, train rounds of it again and "
        "compare. Exit code 0, 1 (faults) or 3 (nothing wrong, and something could not be "
        "checked).",
        params=[
            click.Argument(["run"], type=click.Path()),
            click.Option(
                ["--replay"],
                type=click.IntRange(min=0),
                default=0,
                help="So many rounds, drawn at random, are trained again, each from the nearest "
                "checkpoint that was kept (--keep), else from round 0; what that takes is said "
                "first.",
            ),
            declare_moved_data("For --replay: "),
            declare_data_memory("--data-memory"),
            declare_trust("For --replay: "),
            click.Option(["--json", "as_json"], is_flag=True, help="For machines."),
        ],
    )


def verify(ctx: click.Context, run: str, as_json: bool, **given: Any) -> None:
    from fltrain.runs.finding import require_run_folder
    from fltrain.runs.sweep_folder import is_sweep
    from fltrain.studies.folder.study_folder import is_study
    from niidpart.errors import FileFault

    try:
        is_one = not is_sweep(run) and not is_study(run)
        if is_one:
            require_run_folder(run)  # before torch is imported, which takes seconds
            verdicts = {run: _verify_run(run, **given)}
        elif is_study(run):
            verdicts = _verify_study(run, **given)
        else:
            verdicts = _verify_cells(run, **given)
    except (OSError, FileFault) as error:
        if as_json:  # machines read an answer in any case
            say(json.dumps({"run": run, "error": str(error), "exit": 1}))
        raise
    if as_json:
        told = [{"run": folder} | verdict.to_json() for folder, verdict in verdicts.items()]
        say(json.dumps(told[0] if is_one else told))
    else:
        say("\n".join(_describe(*each) for each in verdicts.items()))
    ctx.exit(_join_codes([verdict.exit_code for verdict in verdicts.values()]))


def _verify_run(folder: str, **given: Any) -> "RunVerdict":
    import fltrain

    with Bar() as progress:
        return fltrain.verify(folder, progress=progress, **given)


def _verify_study(study: str, **given: Any) -> "dict[str, RunVerdict]":
    """Return the verdict of each finished cell of a study."""
    from fltrain.studies.verifying import require_finished, verify_study

    require_finished(study)
    return verify_study(study, lambda folder: _verify_run(folder, **given))


def _verify_cells(sweep: str, **given: Any) -> "dict[str, RunVerdict]":
    """Return the verdict of each run of a sweep, of those that are gone too."""
    from fltrain.runs.sweep_folder import read_asked_cells

    names = read_asked_cells(sweep)
    return {str(Path(sweep) / name): _verify_cell(sweep, name, **given) for name in names}


def _verify_cell(sweep: str, name: str, **given: Any) -> "RunVerdict":
    """Return the verdict of a run of a sweep: what keeps it from being read is its one fault.

    So the runs behind it have theirs too.
    """
    import fltrain
    from fltrain.runs.sweep_folder import why_not_cell
    from fltrain.verification.verdict import RunFault, RunVerdict

    reason = why_not_cell(sweep, name)
    if not reason:
        try:
            return _verify_run(str(Path(sweep) / name), **given)
        except fltrain.FileFault as error:
            reason = str(error)
    fault = RunFault(file=".", round=None, what=reason)
    return RunVerdict(faults=[fault], unchecked=[])


def _join_codes(codes: Sequence[int]) -> int:
    """Return the exit code of several verdicts: a fault counts before what was not checked."""
    return 1 if 1 in codes else max(codes)


def _describe(folder: str, verdict: "RunVerdict") -> str:
    """Return a verdict in words."""
    if verdict.faults:
        lines = [f"{folder} is not as it was written:"]
        lines += [f"  {fault}" for fault in verdict.faults]
    else:
        rounds, kept = verdict.rounds, verdict.checkpoints
        of_rounds = count_noun(rounds, "round")
        of_kept = count_noun(len(kept), "checkpoint")
        found = "has nothing wrong"
        if verdict.unchecked:
            found = "could not be checked in full; in the rest nothing is wrong"
        lines = [f"{folder} {found}: {of_rounds}, {of_kept}"]
    lines += [f"  not checked: {what}" for what in verdict.unchecked]
    if verdict.new_parties:
        numbers = ", ".join(map(str, verdict.new_parties))
        lines.append(f"  never trained (--new-parties): {numbers}")
    if verdict.replayed:
        again = ", ".join(map(str, verdict.replayed))
        lines.append(f"  trained again, with the same digests: {again}")
    return "\n".join(lines)
