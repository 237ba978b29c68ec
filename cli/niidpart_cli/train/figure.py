"""`fltrain figure`, and `plot`, as it was called."""

from typing import Any

import click

from ..command import AdvisingCommand, EntryCommand, Slot
from ..look import declare_look
from ..options import NameList, declare_all, declare_entry, list_entries, select_others
from ..terminal import say
from .drawing import draw_figure, draw_paper_figures
from .evidence_options import declare_better, declare_missing
from .metric_option import declare_metric
from .where_option import declare_where

_HELP = (
    "Draw a study, or runs and sweeps. KIND is one of those below, or file.py:function. Runs that "
    "differ in seeds alone are trials of one setting; what failed is shown and counted "
    "(docs/figures.md)."
)
_EXAMPLES = """
  fltrain figure curves runs/fedavg runs/solo --x bytes
  fltrain figure against STUDY --axis local_epochs -o epochs.pdf --medium column
  fltrain figure parties STUDY --where beta=0.1 -o parties.svg
  fltrain figure --paper STUDY"""


def figure_command() -> click.Command:
    from fltrain.figures import FIGURES

    fixed = _declare_fixed()

    def figure(kind: str, paper: bool, **values: Any) -> None:
        if paper:
            draw_paper_figures((kind, *values["runs"]), values)
            return
        draw_figure(kind, values, select_others(values, fixed))

    return EntryCommand(
        "figure",
        fixed=fixed,
        list_entry_options=lambda: declare_all(FIGURES),
        slots=[Slot.of("", "kind", FIGURES)],
        callback=figure,
        help=_HELP,
        describe_entries=lambda: f"\b\nKinds:\n{list_entries(FIGURES)}\n\n\b\nExamples:{_EXAMPLES}",
    )


def plot_command() -> click.Command:
    """Return the command by its name of earlier versions, with the options that it had."""
    from fltrain.figures import FIGURES

    help = "Is called fltrain figure curves now, and draws what that draws."
    params = [
        click.Argument(["runs"], type=click.Path(), nargs=-1, required=True),
        _declare_metric(),
        *[option for option in declare_entry(FIGURES, "curves") if option.name == "x"],
        _declare_each(),
        *declare_look(),
        click.Option(
            ["-o", "--out"],
            type=click.Path(dir_okay=False),
            default="curves.png",
            show_default=True,
            help="The picture. Its ending says which format: png, svg or pdf.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="For machines (docs/json.md)."),
    ]
    return AdvisingCommand("plot", callback=plot, help=help, params=params)


def plot(x: str | None, **values: Any) -> None:
    said = "fltrain plot is called fltrain figure curves now; a later version will not know the old"
    say(f"{said} name", err=True)
    draw_figure("curves", values, {} if x is None else {"x": x})


def _declare_fixed() -> list[click.Parameter]:
    return [
        click.Argument(["kind"], metavar="KIND"),
        click.Argument(["runs"], type=click.Path(), nargs=-1),
        click.Option(
            ["--paper"],
            is_flag=True,
            help="In the place of KIND, of a study begun with --paper: all figures that the paper "
            "draws of it, a file each.",
        ),
        *_declare_words(),
        *declare_look(),
        _declare_style(),
        click.Option(
            ["-o", "--out"],
            type=click.Path(dir_okay=False),
            help="The figure. Its ending says which format: pdf, svg or png.  [KIND.pdf]",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="For machines (docs/json.md)."),
    ]


def _declare_metric() -> click.Option:
    return declare_metric("This metric, not what the kind shows by itself")


def _declare_each() -> click.Option:
    help = "Each run by itself, no means: a colour a setting, a dash a seed."
    return click.Option(["--each"], is_flag=True, help=help)


def _declare_style() -> click.Option:
    return click.Option(
        ["--style"],
        multiple=True,
        metavar="NAME|FILE",
        help="A style sheet of matplotlib. Yours counts wherever it says something, your "
        "matplotlibrc too.",
    )


def _declare_words() -> list[click.Option]:
    return [
        _declare_metric(),
        click.Option(
            ["--by"],
            type=NameList(),
            help="The axes by which series differ, with commas.  [all that vary]",
        ),
        click.Option(
            ["--panels"],
            type=NameList(),
            help="The axes by which panels differ; '' for one panel.  [those of a study's splits]",
        ),
        declare_where(),
        click.Option(["--group"], help="The group of a study that has several."),
        _declare_each(),
        *declare_missing(),
        declare_better(),
    ]
