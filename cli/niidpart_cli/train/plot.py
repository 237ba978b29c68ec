"""`fltrain plot`."""

import json
from pathlib import Path
from typing import Any

import click

from ..command import AdvisingCommand
from ..look import declare_look, describe_drawn, read_look
from ..terminal import say, to_one_line
from .metric_option import declare_metric, join_names


def plot_command() -> click.Command:
    return AdvisingCommand(
        "plot",
        callback=plot,
        help="Draw the curves of runs, or of all in a sweep, together. Runs that differ in seeds "
        "alone are one curve, the mean, with a band of a sample standard deviation.",
        params=[
            click.Argument(["runs"], type=click.Path(), nargs=-1, required=True),
            declare_metric("A panel with this metric, not accuracy and training loss"),
            click.Option(
                ["--x", "along"],
                type=click.Choice(["rounds", "bytes", "seconds"]),
                default="rounds",
                show_default=True,
                help="The horizontal axis.",
            ),
            click.Option(
                ["--each"],
                is_flag=True,
                help="A curve for each run, no bands: a colour a setting, a dash a seed.",
            ),
            *declare_look(),
            click.Option(
                ["-o", "--out"],
                type=click.Path(dir_okay=False),
                default="curves.png",
                show_default=True,
                help="The picture. Its ending says which format: png, svg or pdf.",
            ),
            click.Option(
                ["--json", "as_json"], is_flag=True, help="Print the file and its curves as JSON."
            ),
        ],
    )


def plot(
    runs: tuple[str, ...],
    out: str,
    each: bool,
    as_json: bool,
    **values: Any,
) -> None:
    from fltrain.runs.finding import find_runs

    found = find_runs(runs)  # before torch is imported, which takes seconds
    from fltrain.runs.curves import list_gaps, save_curves
    from fltrain.runs.folder import RunFolder
    from fltrain.runs.points import read_history
    from fltrain.runs.trials import group_trials

    folders = {run: RunFolder.open(run) for run in found}
    configs = {run: folder.config for run, folder in folders.items()}
    groups = group_trials(configs, each)
    setting_of = {
        run: group.label for group in group_trials(configs) for run in (*group.runs, *group.repeats)
    }
    metrics = join_names(values["metric"])
    drawn = {group.label: [read_history(folders[run]) for run in group.runs] for group in groups}
    is_replaced = Path(out).exists()
    path = save_curves(
        drawn,
        out,
        metrics=metrics,
        settings={group.label: setting_of[group.runs[0]] for group in groups},
        along=values["along"],
        **read_look(values),
    )
    for gap in list_gaps(drawn, metrics, values["along"]):
        say(to_one_line(gap), err=True)
    if as_json:
        curves = {group.label: list(group.runs) for group in groups}
        say(json.dumps({"file": str(path), "curves": curves, "replaced": is_replaced}))
        return
    say(describe_drawn(path, is_replaced))
