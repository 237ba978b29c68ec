"""`fltrain algorithms`."""

import itertools
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..command import AdvisingCommand
from ..tables import format_table
from ..terminal import say, say_table
from .loading import load_training

if TYPE_CHECKING:
    from fltrain.catalogue.listing import ListedAlgorithm

_HELP = (
    "List the algorithms by their families: papers, what each party keeps from round to round, "
    "what goes down and up in a round (M: a model), which engines train it. With NAME... these "
    "alone, one's own too (file.py:function). All is what a round on a small model shows, with "
    "the defaults of options; a share of M is one of that model. docs/algorithms.md has the rest."
)
_HEADER = ["algorithm", "paper", "keeps", "down", "up", "engines"]
_NEAR = 0.02  # of a model: a few numbers, which have names


def algorithms_command() -> click.Command:
    return AdvisingCommand(
        "algorithms",
        callback=list_algorithms,
        help=_HELP,
        params=[
            click.Argument(["names"], nargs=-1, metavar="[NAME]..."),
            click.Option(["--json", "as_json"], is_flag=True, help="For machines (docs/json.md)."),
        ],
    )


def list_algorithms(names: tuple[str, ...], as_json: bool) -> None:
    load_training()
    from fltrain.catalogue.listing import describe_algorithms

    listed = describe_algorithms(names)
    if as_json:
        say(json.dumps([one.to_json() for one in listed]))
        return
    # each family as it comes: a round of every algorithm takes a while
    for number, (family, ones) in enumerate(itertools.groupby(listed, lambda one: one.family)):
        _say_family(family, ones, is_first=number == 0)


def _say_family(family: str, ones: Iterable["ListedAlgorithm"], *, is_first: bool) -> None:
    """Print the algorithms of a family below what it is."""
    from fltrain.catalogue.families import FAMILIES

    rows = [_format_row(one) for one in ones]
    if not is_first:
        say()
    say(f"{family}: {FAMILIES[family]}" if family else "of no family")
    say_table(format_table(_HEADER, rows))


def _format_row(one: "ListedAlgorithm") -> list[str]:
    from fltrain.engine import EXECUTORS

    without = [engine for engine in EXECUTORS if engine not in one.engines]
    return [
        one.name,
        "; ".join(one.papers),
        ", ".join(f"{name} ({size})" for name, size in one.keeps.items()),
        _format_moved(one.down, one.told),
        _format_moved(one.up, one.uploaded),
        f"all but {', '.join(without)}" if without else "all",
    ]


def _format_moved(models: float, besides: list[str]) -> str:
    """`2 M (delta)`."""
    whole = round(models)
    if models == 0:
        return "nothing"
    if whole and abs(models - whole) < _NEAR:
        size = "M" if whole == 1 else f"{whole} M"
    else:
        size = f"{models:.2f} M"
    return f"{size} ({', '.join(besides)})" if besides else size
