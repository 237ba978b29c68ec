"""Options that take several numbers, `--mu 0.01,0.1,1`, and what a sweep prints. Needs no torch."""

import json
import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from fltrain.runs import grid
from niidpart.errors import UsageError

from .program import Pluggable, Rounds, given, given_besides, table

HELP = (
    f"Commas sweep: --mu 0.01,0.1 --lr 0.01,0.1 --trials 3 trains all 12 at once, each as if alone; {grid.WHAT}. Several split files of one data "
    "set are swept too. Words and other settings take one value. In lists of rounds (--lr-drops, --milestones) commas part the rounds of one run."
)


class Numbers(click.ParamType):
    """A number, or several with commas between them as a list: those of a sweep."""

    def __init__(self, one: click.ParamType):
        self.one = one
        self.name = f"{one.name}[,...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or "," not in value:
            return self.one.convert(value, param, ctx)
        return [self.one.convert(part.strip(), param, ctx) for part in value.split(",")]


def sweepable(
    options: Sequence[click.Option], names: Sequence[str] | None = None
) -> list[click.Option]:
    """The options, those that are numbers taking several. names: only these; None for all."""
    for option in options:
        if option.type in (click.INT, click.FLOAT) and (names is None or option.name in names):
            option.type = Numbers(option.type)
    return list(options)


class Sweepable(Pluggable):
    """A command some of whose options take several numbers; where another one is given several values, the error says which do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as error:
            got = re.match(r"'([^']*)'", error.message)
            if (
                got
                and "," in got[1]
                and error.param is not None
                and not isinstance(error.param.type, Numbers | Rounds)
            ):
                said = f"{error.message} It takes one value: {grid.WHAT}; run it once for each."
                raise click.BadParameter(said, ctx=error.ctx, param=error.param) from error
            raise


def words(values: dict[str, Any]) -> None:
    """ValueError where several names are given for what takes one: names are looked up, and two with a comma would be no name."""
    for name in ("algorithm", "model", "preset"):
        value = values[name]
        if value and "," in value and ":" not in value:
            raise UsageError(
                f"--{name} is {value}; words are not swept: {grid.WHAT}. Run it once for each"
            )


def is_swept(values: dict[str, Any]) -> bool:
    return (
        len(values["split"]) > 1
        or values["trials"] > 1
        or any(isinstance(value, list) for value in values.values())
    )


def asked(
    values: dict[str, Any], fixed: Sequence[click.Parameter], settings: Sequence[click.Parameter]
) -> dict[str, Any]:
    """The keyword arguments of `fltrain.sweep`: what was given several times and all options of the algorithm as its grid, the rest as settings."""
    numbers = given(values, settings)
    several = {name: value for name, value in numbers.items() if isinstance(value, list)}
    options = {
        name: value if isinstance(value, list) else [value]
        for name, value in given_besides(values, fixed).items()
    }
    alone = {name: value for name, value in numbers.items() if name not in several}
    return (
        {name: values[name] for name in ("algorithm", "trials", "model", "preset", "data_root")}
        | alone
        | {"grid": options | several}
    )


def finished(
    done: Sequence[Any], out: Path, as_json: bool, runs: Callable[[Sequence[dict[str, Any]]], str]
) -> None:
    """What a sweep has come to. runs: the table of their summaries. Exit code 1 where a cell diverged."""
    if as_json:
        click.echo(json.dumps([_as_json(run) for run in done]))
    else:
        from fltrain.runs.comparison import summary
        from fltrain.runs.folder import RunFolder

        rows = [summary(run.folder.name, RunFolder.opened(run.folder)) for run in done]
        click.echo(runs(rows))
        if over_trials := trials(
            [run.cell for run in done], rows, [run.diverged is not None for run in done]
        ):
            click.echo(f"\n{over_trials}")
        click.echo(f"\nruns     {out}")
    if lost := [run for run in done if run.diverged]:
        told = [f"{run.folder.name}: {_message(run.diverged)}" for run in lost]
        raise click.ClickException(
            "\n".join([f"{len(lost)} of {len(done)} cells diverged, the others are done", *told])
        )


def trials(
    cells: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]], diverged: Sequence[bool]
) -> str:
    """The table over trials, as papers print it: final and best accuracy of each setting, mean ± sample standard deviation over its seeds.

    "" where no setting has several. A setting with a diverged trial, or one that was never evaluated, has no mean.
    """
    groups = grid.settings_apart(cells)
    if not any(len(members) > 1 for members in groups.values()):
        return ""
    lines = []
    for name, members in groups.items():
        values = [
            [None if diverged[i] else rows[i][key] for i in members] for key in ("final", "best")
        ]
        lines.append([name or "all", len(members), *(_mean(v) for v in values)])
    return table(["setting", "trials", "final % mean ± std", "best % mean ± std"], lines)


def _mean(values: Sequence[float | None]) -> str:
    known = [100 * v for v in values if v is not None]
    if len(known) < len(values):
        return "-"
    return f"{statistics.mean(known):.2f}" + (
        f" ± {statistics.stdev(known):.2f}" if len(known) > 1 else ""
    )


def _as_json(run: Any) -> dict[str, Any]:
    last = run.history[-1] if run.history else {}
    return (
        last
        | {"folder": str(run.folder), "cell": run.cell}
        | ({"diverged": str(run.diverged)} if run.diverged else {})
    )


def _message(error: BaseException) -> str:
    return "; ".join([str(error), *getattr(error, "__notes__", [])])
