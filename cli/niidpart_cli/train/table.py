"""`fltrain table`."""

import json
from typing import TYPE_CHECKING

import click

from niidpart.errors import UsageError

from ..command import AdvisingCommand
from ..options import NameList
from ..tables import format_table
from ..terminal import say, say_table
from .paper import print_beside

if TYPE_CHECKING:
    from fltrain.studies.table import StudyTable

METRIC = "test_accuracy"


def table_command() -> click.Command:
    return AdvisingCommand(
        "table",
        callback=table,
        help="A table for each group of a study: mean and sample standard deviation of the last "
        "round's accuracy on the global test set, and over how many cells. A row whose cells are "
        "not all done has no mean.",
        params=[
            click.Argument(["study"], type=click.Path()),
            click.Option(
                ["--by"],
                type=NameList(),
                help="The axes of the rows, with commas: algorithm, split, an option, a setting.  "
                "[all on which cells differ but the seeds]",
            ),
            click.Option(["--metric"], default=METRIC, show_default=True, help="Of the metrics."),
            click.Option(["--best"], is_flag=True, help="The largest of all rounds, not the last."),
            click.Option(
                ["--partial"], is_flag=True, help="A mean of what is done, where cells are missing."
            ),
            click.Option(
                ["--paper"],
                is_flag=True,
                help="Of a study begun with --paper: ours beside what the paper prints.",
            ),
            click.Option(["--json", "as_json"], is_flag=True, help="For machines."),
        ],
    )


def table(
    study: str,
    by: tuple[str, ...] | None,
    metric: str,
    best: bool,
    partial: bool,
    paper: bool,
    as_json: bool,
) -> None:
    from fltrain.studies.folder import StudyFolder
    from fltrain.studies.roster import read_rows
    from fltrain.studies.table import tabulate

    opened = StudyFolder.open(study)
    cells = read_rows(opened)
    if paper:
        from fltrain.studies.paper_table import set_beside

        if by or best or metric != METRIC:
            raise UsageError("--paper says itself which axes and metric; leave --by and such out")
        print_beside(set_beside(opened, cells, partial=partial), as_json)
        return
    tables = tabulate(
        opened,
        cells,
        by=by or (),
        metric=metric,
        best=best,
        partial=partial,
    )
    if as_json:
        say(json.dumps([one.to_json() for one in tables]))
        return
    for number, one in enumerate(tables):
        if number:
            say()
        if len(tables) > 1:
            say(one.group)
        say_table(_format(one))


def _format(table: "StudyTable") -> str:
    from fltrain.runs.metric_names import is_percentage

    scale, unit = (100, " %") if is_percentage(table.metric) else (1, "")
    rows = []
    for row in table.rows:
        values = [row.where[axis] for axis in table.axes]
        mean = "-" if row.mean is None else f"{scale * row.mean:.2f}"
        if row.std is not None:
            mean += f" ± {scale * row.std:.2f}"
        n = str(row.n) if row.n == row.cells else f"{row.n} of {row.cells}"
        rows.append([*["-" if value is None else value for value in values], mean, n])
    return format_table([*table.axes, f"{table.metric}{unit}", "n"], rows)
