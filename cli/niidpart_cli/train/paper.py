"""The studies of papers, for `fltrain study --paper` and `fltrain table --paper`."""

import json
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from niidpart.errors import UsageError

from ..options import NameList
from ..tables import format_table
from ..terminal import say, say_table

if TYPE_CHECKING:
    from fltrain.studies.papers.paper_studies import Scale
    from fltrain.studies.papers.paper_table import BesideRow, BesideTable
    from fltrain.studies.plans.asking import AskedPlan

_LIST = "?"  # the value of --paper without one
_DEFAULT: "Scale" = "small"
# Of --paper alone: each with what it is where it is not given.
_OF_PAPER: Mapping[str, Any] = {
    "scale": None,
    "data_root": None,
    "trials": None,
    "only": (),
    "changes": (),
}


def declare_paper_options() -> list[click.Parameter]:
    """Return the options of `fltrain study` that the studies of papers have."""
    return [
        click.Option(
            ["--paper"],
            is_flag=False,
            flag_value=_LIST,
            metavar="[NAME]",
            help="A study of a paper that comes with the package, such as niid/table3; without a "
            "name: list them.",
        ),
        click.Option(
            ["--scale"],
            type=click.Choice(["small", "full"]),
            help="Of --paper: the paper's own cells, or small ones that need no download and take "
            "a minute or two.  [small]",
        ),
        click.Option(
            ["--data-root"],
            help="Of --paper, and of a packed study: the folder of its data sets.",
        ),
        click.Option(["--trials"], type=click.IntRange(min=1), help="Of --paper: so many seeds."),
        click.Option(
            ["--only"],
            type=NameList(),
            multiple=True,
            metavar="AXIS=A,B",
            help="Of --paper: only these cells, such as --only dataset=mnist,fcube --only "
            "algorithm=fedavg. Give more of them later, and the study grows.",
        ),
        click.Option(
            ["--set", "changes"],
            multiple=True,
            metavar="SETTING=VALUE",
            help="Of --paper: another value of a setting, such as --set rounds=10.",
        ),
    ]


def take_paper_options(asked: dict[str, Any]) -> dict[str, Any]:
    """Take what is said of --paper out of the values of a command, and return it.

    UsageError where it is said without --paper, or a plan is named beside it.
    """
    said = {name: asked.pop(name) for name in ("paper", *_OF_PAPER)}
    if said["paper"] is None:
        for name, default in _OF_PAPER.items():
            if said[name] != default:
                flag = "--set" if name == "changes" else f"--{name.replace('_', '-')}"
                advice = "a plan says it itself, a paper's study grows by --paper NAME --out FOLDER"
                raise UsageError(f"{flag} is of --paper NAME; {advice}")
        return {}
    return said


def print_paper_studies(as_json: bool) -> None:
    """Print all studies of papers: what they show, and how many cells they have."""
    from fltrain.studies.papers.paper_studies import SCALES, find_paper_study, list_paper_studies
    from fltrain.studies.plans.choice import count_cells
    from fltrain.studies.plans.expansion import expand_plan
    from fltrain.studies.plans.plan import read_plan

    found = []
    for name in list_paper_studies():
        study = find_paper_study(name)
        plans = {scale: read_plan(study.write_plan(scale)) for scale in SCALES}
        told = {"name": name, "paper": study.paper, "shows": study.shows, "about": study.about}
        cells = {scale: count_cells(expand_plan(plan)) for scale, plan in plans.items()}
        found.append(told | cells)
    if as_json:
        say(json.dumps(found))
        return
    columns = ["name", "shows", "paper", "full", "small", "about"]
    say_table(format_table(columns, [[one[column] for column in columns] for one in found]))
    say("\nfull and small: how many cells; fltrain study --paper NAME --dry-run says more")


def is_list_asked(paper: Mapping[str, Any]) -> bool:
    """Return whether --paper was given without a name."""
    return bool(paper["paper"] == _LIST)


def ask_paper_study(paper: Mapping[str, Any]) -> "AskedPlan":
    """Return the plan of a paper as it was asked for, and say on stderr what its scale shrinks."""
    from fltrain.studies.papers.paper_studies import find_paper_study
    from fltrain.studies.papers.scale import describe_scale
    from fltrain.studies.plans.asking import ask_plan

    study = find_paper_study(paper["paper"])
    scale: Scale = paper["scale"] or _DEFAULT
    say(f"{study.name}: {study.paper}, {study.shows}: {study.about}", err=True)
    for line in describe_scale(study, scale):
        say(line, err=True)
    fixed = dict(_read_change(text) for text in paper["changes"])
    if paper["data_root"]:
        fixed["data_root"] = paper["data_root"]
    changes: dict[str, Any] = {"fixed": fixed}
    if paper["trials"]:
        changes["trials"] = paper["trials"]
    return ask_plan(study.write_plan(scale, changes), _read_only(paper["only"]))


def _read_change(text: str) -> tuple[str, Any]:
    """Return the setting and the value of `rounds=10`; a value that is no TOML is a text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--set {text!r} has no value; write --set rounds=10")
    word = name.strip().replace("-", "_")
    try:
        return word, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return word, value


def _read_only(given: tuple[tuple[str, ...], ...]) -> dict[str, list[str]]:
    """Return the values on each axis: of `--only dataset=mnist,fcube` two."""
    only: dict[str, list[str]] = {}
    for names in given:
        first, *others = names
        axis, equals, value = first.partition("=")
        if not equals:
            raise UsageError(f"--only {first!r} has no value; write --only algorithm=fedavg")
        only.setdefault(axis, []).extend([value, *others])
    return only


def print_beside(tables: "list[BesideTable]", as_json: bool) -> None:
    """Print tables of a paper with ours beside them."""
    if as_json:
        say(json.dumps([table.to_json() for table in tables]))
        return
    if not tables:
        say("none of the paper's cells is in the study; fltrain table shows what is")
    for number, table in enumerate(tables):
        if number:
            say()
        say(f"{table.study}, {table.shows}, {table.metric}")
        if table.departures:
            say(f"not judged: {', '.join(table.departures)}")
        header = [*table.by, "ours", "n", "printed", "difference", "deviations", "within 2"]
        if table.best_of:
            header.append(f"best {table.best_of}")
        say_table(format_table(header, [_list_columns(row, table) for row in table.rows]))
        if table.best:
            told = [f"{one.value} {one.ours} (printed {one.printed})" for one in table.best]
            say(f"how often best: {', '.join(told)}")


def _list_columns(row: "BesideRow", table: "BesideTable") -> list[str]:
    judged = {True: "yes", False: "no", None: "-"}[row.within]
    columns = [
        *[str(row.where[axis]) for axis in table.by],
        _join(row.mean, row.std, digits=2),
        str(row.n) if row.n == row.cells else f"{row.n} of {row.cells}",
        _join(row.printed, row.printed_std, digits=None),
        "-" if row.difference is None else f"{row.difference:+.2f}",
        "-" if row.deviations is None else f"{row.deviations:+.1f}",
        judged,
    ]
    if table.best_of:
        columns.append("-" if row.chosen is None else str(row.chosen))
    return columns


def _join(mean: float | None, std: float | None, *, digits: int | None) -> str:
    """Return `98.91 ± 0.10`. digits: behind the point; None for as many as there are."""
    if mean is None:
        return "-"
    told = [
        repr(one) if digits is None else f"{one:.{digits}f}"
        for one in (mean, std)
        if one is not None
    ]
    return " ± ".join(told)
