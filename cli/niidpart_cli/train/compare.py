"""`fltrain compare`."""

import json
from collections.abc import Sequence
from typing import Any

import click

from ..tables import format_table


def compare_command() -> click.Command:
    return click.Command(
        "compare",
        callback=compare,
        help="A table of runs, or of all in a sweep: final and best test accuracy, rounds, bytes "
        "moved. Says where they differ.",
        params=[
            click.Argument(["runs"], type=click.Path(), nargs=-1, required=True),
            click.Option(["--json", "as_json"], is_flag=True, help="For machines."),
        ],
    )


def compare(runs: tuple[str, ...], as_json: bool) -> None:
    from fltrain.runs.comparison import list_differences, summarise
    from fltrain.runs.folder import RunFolder
    from fltrain.runs.sweep_folder import list_runs

    folders = {run: RunFolder.open(run) for run in list_runs(runs)}
    rows = [summarise(run, folder) for run, folder in folders.items()]
    found = list_differences(folders)
    if as_json:
        click.echo(json.dumps({"runs": rows, "differences": found}))
        return
    click.echo(format_summaries(rows))
    for line in found:
        click.echo(f"not the same in all runs: {line}", err=True)


def format_summaries(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of what runs have reached, from their summaries."""
    has_personal = any(row["personal"] is not None for row in rows)
    personal_header = ["personal %"] if has_personal else []
    header = ["run", "algorithm", "rounds", "final %", "best %", "at round"]
    lines = []
    for row in rows:
        personal = [_format_percent(row["personal"])] if has_personal else []
        line = [
            row["run"],
            row["algorithm"],
            row["rounds"],
            _format_percent(row["final"]),
            _format_percent(row["best"]),
            row["best_round"] or "-",
        ]
        lines.append([*line, *personal, f"{row['bytes'] / 1e6:.2f}"])
    return format_table([*header, *personal_header, "MB moved"], lines)


def _format_percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
