"""`fltrain presets`, and the name of a preset as the value of an option."""

import json
from typing import Any

import click
from click.shell_completion import CompletionItem

from niidpart.errors import UsageError

from .program import Entry, table


class PresetName(click.ParamType):
    """Completes; what is no preset is refused by whoever looks it up."""

    name = "text"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from fltrain import presets

        return [CompletionItem(n) for n in presets.names() if n.startswith(incomplete)]


# what is said beside a condition's values where they alone are not clear
_CONDITIONS = {
    "transforms": "with {}",
    "parties": "{} parties",
    "own_test": "own test set",
    "model": "with {}",
}


def presets_command() -> click.Command:
    @click.command(
        help="List the presets; with NAME every value of one, for whom it holds and where it is said. Any option beside --preset wins."
    )
    @click.argument("name", required=False, type=PresetName())
    @click.option(
        "--dataset",
        type=Entry("niidpart.sources"),
        help="Only what holds for this data set (mnist, cifar10, ...).",
    )
    @click.option(
        "--algorithm", type=Entry("fltrain.algorithms"), help="Only what holds for this algorithm."
    )
    @click.option("--json", "for_machines", is_flag=True, help="For machines.")
    def presets(
        name: str | None, dataset: str | None, algorithm: str | None, for_machines: bool
    ) -> None:
        from fltrain import presets
        from fltrain.presets import Case

        if name is None:
            if dataset or algorithm:
                raise click.UsageError(
                    f"--dataset and --algorithm choose among the values of one preset; name it: {', '.join(presets.names())}"
                )
            _list(presets, for_machines)
            return
        preset = presets.find(name)
        case = Case(
            _entry("niidpart.sources", "data set", dataset),
            _entry("fltrain.algorithms", "algorithm", algorithm),
        )
        rows = preset.listing(case)
        command = _command(rows, case) if dataset and algorithm else None
        if for_machines:
            values = [r.to_json() for r in rows if r.kind != "grid"]
            grids = [r.to_json() for r in rows if r.kind == "grid"]
            click.echo(
                json.dumps(
                    _about(name, preset)
                    | {"values": values, "grids": grids, "notes": preset.notes, "command": command}
                )
            )
            return
        click.echo(
            "\n\n".join(
                filter(
                    None,
                    [
                        f"{name}: {preset.about}; {', '.join(preset.sources)}",
                        *_tables(rows, case),
                        "\n".join(preset.notes),
                    ],
                )
            )
        )
        if dataset and dataset not in preset.sources:
            click.echo(f"\n{_not_theirs(name, dataset)}")
        if command:
            click.echo(f"\nthe same without the name, where nothing else above holds\n{command}")

    return presets


def options_of(name: str | None, split: Any, algorithm: str, model: str | None) -> dict[str, Any]:
    """The options that a preset has for the algorithm; its settings and model are `fltrain.run`'s to look up. Says if the data is not the paper's."""
    from fltrain import presets

    if name is None:
        return {}
    found = presets.find(name).on(split, algorithm, model)
    if not found.known:
        click.echo(_not_theirs(name, split.source.name), err=True)
    return found.options


def _not_theirs(name: str, source: str) -> str:
    return f"{source} is no data set of the paper of {name}: what depends on the data keeps its default"


def _entry(package: str, kind: str, name: str | None) -> str | None:
    """The name, if there is such a file; nothing is imported for it. A user's own file is let through: no row names it."""
    from niidpart.registry import did_you_mean, list_names

    if name is not None and ":" not in name and name not in list_names(package):
        raise UsageError(f"unknown {kind} {name!r}; {did_you_mean(name, list_names(package))}")
    return name


def _list(presets: Any, for_machines: bool) -> None:
    found = {name: presets.find(name) for name in presets.names()}
    if for_machines:
        click.echo(json.dumps([_about(name, preset) for name, preset in found.items()]))
        return
    click.echo(
        table(
            ["preset", "paper", "data sets"],
            [[name, p.about, ", ".join(p.sources)] for name, p in found.items()],
        )
    )


def _about(name: str, preset: Any) -> dict[str, Any]:
    return {"name": name, "about": preset.about, "sources": preset.sources}


def _tables(rows: list[Any], case: Any) -> list[str]:
    """The values, and what the paper tried, each with the conditions that the case leaves open."""
    values = [[_flag(r.name, r.value), _open(r, case), r.where] for r in rows if r.kind != "grid"]
    grids = [
        [f"--{_dashed(r.name)}", _open(r, case), " ".join(map(_text, r.value)), r.where]
        for r in rows
        if r.kind == "grid"
    ]
    return [
        table(["option", "for", "source"], values),
        table(["grid", "for", "values", "source"], grids),
    ]


def _open(row: Any, case: Any) -> str:
    """`mnist fmnist, fedrl`."""
    said = {
        key: " ".join(map(str, wanted))
        for key, wanted in row.when.items()
        if getattr(case, key) is None
    }
    return (
        ", ".join(_CONDITIONS.get(key, "{}").format(words) for key, words in said.items()) or "all"
    )


def _command(rows: list[Any], case: Any) -> str:
    sure = [r for r in rows if r.kind != "grid" and r.holds(case)]
    return " ".join(
        [
            "fltrain run split.h5",
            f"--algorithm {case.algorithm}",
            *(_flag(r.name, r.value) for r in sure),
        ]
    )


def _flag(name: str, value: Any) -> str:
    """The value as an option of `fltrain run`."""
    if isinstance(value, bool):
        return f"--{'' if value else 'no-'}{_dashed(name)}"
    return f"--{_dashed(name)} {_text(value)}"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _text(value: Any) -> str:
    return (",".join(map(str, value)) or "''") if isinstance(value, tuple) else str(value)
