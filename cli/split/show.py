"""`niidpart show`."""

import json

import click

from .report import as_json, parties, summary

SHOWN = 20  # parties in the table, unless --all


def show_command() -> click.Command:
    @click.command(help="Print what a split file holds: recipe, source, digest, and who holds what.")
    @click.argument("file", type=click.Path())
    @click.option("--all", "everyone", is_flag=True, help=f"All parties, not the first {SHOWN}.")
    @click.option("--json", "for_machines", is_flag=True, help="For machines.")
    def show(file: str, everyone: bool, for_machines: bool) -> None:
        import niidpart

        split = niidpart.read(file)
        if for_machines:
            click.echo(json.dumps(as_json(split)))
        else:
            click.echo(f"{summary(split)}\n\n{parties(split, split.n_parties if everyone else SHOWN)}")

    return show
