"""`fltrain presets`, and the name of a preset as the value of an option."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean, list_names

from ..command import AdvisingCommand
from ..options import EntryName, KnownName, to_flag
from ..tables import format_table
from ..terminal import say

if TYPE_CHECKING:
    from fltrain.presets import Case, Preset, Row
    from niidpart import FederatedSplit


def _list_presets() -> list[str]:
    from fltrain import presets

    return presets.names()


PRESET_NAME = KnownName(_list_presets)

_FEW = 2  # parties of a round, of which the smaller number is one
# What is said with a condition's values where they alone are not clear.
_CONDITIONS = {
    "transforms": "with {}",
    "parties": "{} parties",
    "own_test": "own test set",
    "model": "with {}",
}


def presets_command() -> click.Command:
    return AdvisingCommand(
        "presets",
        callback=list_presets,
        help="List the presets; with NAME every value of one, for whom it holds and where it is "
        "said. Any option given with --preset wins.",
        params=[
            click.Argument(["name"], required=False, type=PRESET_NAME),
            click.Option(
                ["--dataset"],
                type=EntryName("niidpart.sources"),
                help="Only what holds for this data set (mnist, cifar10, ...).",
            ),
            click.Option(
                ["--algorithm"],
                type=EntryName("fltrain.algorithms"),
                help="Only what holds for this algorithm.",
            ),
            click.Option(["--json", "as_json"], is_flag=True, help="For machines."),
        ],
    )


def list_presets(
    name: str | None, dataset: str | None, algorithm: str | None, as_json: bool
) -> None:
    from fltrain import presets

    if name is not None:
        _show_preset(name, dataset, algorithm, as_json)
        return
    names = presets.names()
    if dataset or algorithm:
        what = "--dataset and --algorithm choose among the values of one preset"
        raise click.UsageError(f"{what}; name it: {', '.join(names)}")
    found = {each: presets.find(each) for each in names}
    if as_json:
        say(json.dumps([_describe(each, preset) for each, preset in found.items()]))
        return
    rows = [[each, preset.about, ", ".join(preset.sources)] for each, preset in found.items()]
    say(format_table(["preset", "paper", "data sets"], rows))


def _show_preset(name: str, dataset: str | None, algorithm: str | None, as_json: bool) -> None:
    from fltrain import presets

    preset = presets.find(name)
    case = presets.Case(
        source=_require_entry("niidpart.sources", "data set", dataset),
        algorithm=_require_entry("fltrain.algorithms", "algorithm", algorithm),
    )
    rows = preset.list_rows(case)
    command = _write_command(rows, case) if dataset and algorithm else None
    if as_json:
        parts = {
            "values": [row.to_json() for row in rows if row.kind != "grid"],
            "grids": [row.to_json() for row in rows if row.kind == "grid"],
            "notes": preset.notes,
            "command": command,
        }
        say(json.dumps(_describe(name, preset) | parts))
        return
    title = f"{name}: {preset.about}; {', '.join(preset.sources)}"
    blocks = [title, *_format_tables(rows, case), "\n".join(preset.notes)]
    say("\n\n".join(filter(None, blocks)))
    if dataset and dataset not in preset.sources:
        say(f"\n{_say_foreign(name, dataset)}")
    if command:
        left_out = "what holds for some splits or models alone is not in it"
        say(f"\nthe same without --preset; {left_out}\n{command}")


def choose_options(
    name: str | None,
    split: "FederatedSplit",
    algorithm: str,
    model: str | None,
    *,
    has_cohort: bool,
) -> dict[str, Any]:
    """Return the options that a preset has for the algorithm; {} without a preset.

    Its settings and model are for `fltrain.run` to look up. Says on stderr if the data is not the
    paper's, and if its share of the parties is a single one. has_cohort: whether another size of
    the cohort was asked for.
    """
    from fltrain import presets

    if name is None:
        return {}
    found = presets.find(name).on(split, algorithm, model)
    if not found.known:
        say(_say_foreign(name, split.source.name), err=True)
    fraction = found.settings.get("fraction", 1.0)
    n_parties = split.recipe.n_parties
    if not has_cohort and n_parties > 1 and n_parties * fraction < _FEW:
        say(_say_alone(name, fraction, n_parties), err=True)
    return found.options


def _say_foreign(name: str, source: str) -> str:
    what = "what depends on the data keeps its default"
    return f"{source} is no data set of the paper of {name}: {what}"


def _say_alone(name: str, fraction: float, n_parties: int) -> str:
    """Return that a preset made for many parties trains one of these in each round."""
    share = f"{name} trains {fraction:.3g} of the parties in a round, of {n_parties} one alone"
    return f"{share}; --fraction 1 takes them all, --cohort-size N so many"


def _require_entry(package: str, kind: str, name: str | None) -> str | None:
    """Return the name, if there is such a file; nothing is imported for it.

    A user's own file is let through: no row names it.
    """
    if name is not None and ":" not in name:
        names = list_names(package)
        if name not in names:
            raise UsageError(f"unknown {kind} {name!r}; {did_you_mean(name, names)}")
    return name


def _describe(name: str, preset: "Preset") -> dict[str, Any]:
    return {"name": name, "about": preset.about, "sources": preset.sources}


def _format_tables(rows: Sequence["Row"], case: "Case") -> list[str]:
    """The values, and what the paper tried, each with the conditions that the case leaves open."""
    values, grids = [], []
    for row in rows:
        conditions = _format_conditions(row, case)
        if row.kind == "grid":
            tried = " ".join(_format_value(value) for value in row.value)
            grids.append([to_flag(row.name), conditions, tried, row.where])
        else:
            values.append([_format_flag(row.name, row.value), conditions, row.where])
    tables = []
    if values:
        tables.append(format_table(["option", "for", "source"], values))
    if grids:
        tables.append(format_table(["grid", "for", "values", "source"], grids))
    return tables


def _format_conditions(row: "Row", case: "Case") -> str:
    """`mnist fmnist, fedrl`."""
    conditions = []
    for key, wanted in row.when.items():
        if getattr(case, key) is None:
            template = _CONDITIONS.get(key, "{}")
            conditions.append(template.format(" ".join(map(str, wanted))))
    return ", ".join(conditions) or "all"


def _write_command(rows: Sequence["Row"], case: "Case") -> str:
    certain = [row for row in rows if row.kind != "grid" and row.holds(case)]
    flags = [_format_flag(row.name, row.value) for row in certain]
    return " ".join(["fltrain run split.h5", f"--algorithm {case.algorithm}", *flags])


def _format_flag(name: str, value: Any) -> str:
    """The value as an option of `fltrain run`."""
    flag = to_flag(name)
    if isinstance(value, bool):
        return flag if value else f"--no-{flag[2:]}"
    return f"{flag} {_format_value(value)}"


def _format_value(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "''"
    return str(value)
