"""`fltrain report`."""

import json
from pathlib import Path
from typing import Any

import click

from ..command import AdvisingCommand
from ..look import describe_written
from ..terminal import say
from .evidence_options import declare_axes, declare_measures, declare_tests, read_request
from .packed import open_packed
from .planning import show_reading

_HELP = (
    "A page on a study, or on runs and sweeps: what was asked, on which splits, a leaderboard with "
    "its intervals, tests in words, curves, parties, cost, environment, what failed, and the "
    "commands that do it again. One HTML file that asks no network (docs/report.md)."
)


def report_command() -> click.Command:
    return AdvisingCommand(
        "report",
        callback=report,
        help=_HELP,
        params=[
            click.Argument(["paths"], type=click.Path(), nargs=-1, required=True),
            *declare_axes(),
            *declare_measures(),
            *declare_tests(),
            click.Option(
                ["-o", "--out"],
                type=click.Path(dir_okay=False),
                default="report.html",
                show_default=True,
                help="The page.",
            ),
            click.Option(
                ["--json", "as_json"], is_flag=True, help="Print the file and its size as JSON."
            ),
        ],
    )


def report(paths: tuple[str, ...], out: str, as_json: bool, **values: Any) -> None:
    # What is asked of the tests has to be possible; what nobody asked for may be left out.
    asks_tests = values["against"] or values["wanted"] is not None
    is_replaced = Path(out).exists()
    with show_reading(), open_packed(paths) as opened:
        from fltrain.report.api import write_report

        request = read_request(values, has_tests=True)
        path = write_report(opened, out, request, needs_tests=bool(asks_tests))
    if as_json:
        size = path.stat().st_size
        say(json.dumps({"file": str(path), "bytes": size, "replaced": is_replaced}))
        return
    say(describe_written(path, is_replaced))
