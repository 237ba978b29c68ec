"""`fltrain work`."""

import json
import shlex
import signal
import time
from dataclasses import asdict

import click

from ..command import AdvisingCommand
from ..interrupts import Interrupted
from ..options import NameList
from ..terminal import say, to_one_line
from .loading import load_training
from .options import declare_bundle, declare_lease, declare_trust


def work_command() -> click.Command:
    return AdvisingCommand(
        "work",
        callback=work,
        help="Work on the study of a folder: claim cells, train them, and end when none is left "
        "that this worker may claim. Any number of workers, on any machines that see the folder. "
        "SIGTERM: checkpoints are written, the claims are freed, exit code 143.",
        params=[
            click.Argument(["folder"], type=click.Path()),
            click.Option(
                ["--cells"], type=NameList(), help="Only these cells, with commas.  [all]"
            ),
            click.Option(
                ["--anywhere"],
                is_flag=True,
                help="Take up runs that were begun where other last bits are computed (another "
                "torch, instruction set or device), and record it.",
            ),
            click.Option(
                ["--limit"],
                type=click.FloatRange(min=0, min_open=True),
                help="Seconds, after which it ends as on SIGTERM, with exit code 0.",
            ),
            declare_bundle(),
            declare_lease(),
            declare_trust(),
            click.Option(["--json", "as_json"], is_flag=True, help="For machines."),
        ],
    )


def _say_news(news: str) -> None:
    """Say what the worker begins and ends, with the time: in a log of a cluster it is sought."""
    say(f"{time.strftime('%H:%M:%S')} {to_one_line(news)}")


def _leave_unsaid(_: str) -> None:
    """Say nothing: for machines there is the end alone."""


def work(
    folder: str,
    cells: tuple[str, ...] | None,
    anywhere: bool,
    limit: float | None,
    bundle: int | None,
    lease: float | None,
    trust: bool,
    as_json: bool,
) -> None:
    load_training()
    from fltrain.studies.work.worker import work as work_on

    worked, heard = work_on(
        folder,
        cells=cells or (),
        anywhere=anywhere,
        limit=limit,
        trust=trust,
        bundle=bundle,
        lease=lease,
        on_news=_leave_unsaid if as_json else _say_news,
    )
    if as_json:
        say(json.dumps(asdict(worked)))
    else:
        n_left = len(worked.left)
        left = (
            f", {n_left} left to workers with the bits of those that began them" if n_left else ""
        )
        said = f"{len(worked.done)} cells done, {len(worked.failed)} failed, "
        say(f"{said}{len(worked.stopped)} stopped{left}")
    if heard:
        raise Interrupted(f"ended by {signal.Signals(heard).name}", 128 + heard)
    if worked.failed:
        first = worked.failed[0]
        causes = f"fltrain study {shlex.quote(folder)} --watch --json says why"
        raise click.ClickException(
            f"{len(worked.failed)} cells failed, {first} with {worked.causes[first]}; {causes}"
        )
