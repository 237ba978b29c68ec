"""`niidpart verify`."""

import json
from typing import Any

import click

from .elsewhere import elsewhere, limits_of


def verify_command() -> click.Command:
    @elsewhere(
        "The file comes from elsewhere: parse it and derive it in child processes with limits, ignore its hint.",
        "reading and deriving",
    )
    @click.command(
        help="Check every rule of the format, and derive the split again from its recipe and its data. Exit code 0, 1 (faults) or 3."
    )
    @click.argument("file", type=click.Path())
    @click.option(
        "--data-root",
        type=click.Path(),
        help="Where the data set lies (for an .npz: the file), if not where the file says.",
    )
    @click.option("--json", "as_json", is_flag=True, help="For machines.")
    @click.pass_context
    def verify(
        ctx: click.Context, file: str, data_root: str | None, as_json: bool, **limits: Any
    ) -> None:
        import niidpart

        try:
            verdict = niidpart.verify(file, data_root=data_root, **limits_of(limits))
        except OSError as error:
            if as_json:  # machines read an answer in any case
                click.echo(json.dumps({"file": file, "error": str(error), "exit": 1}))
            raise
        if as_json:
            click.echo(json.dumps({"file": file} | verdict.to_json()))
        elif verdict.faults:
            click.echo(f"{file} breaks rules of docs/format.md:")
            click.echo("\n".join(f"  {fault}" for fault in verdict.faults))
        elif verdict.derived:
            click.echo(
                f"{file} is valid, and its recipe gives the same split again: {verdict.digest}"
            )
        else:
            click.echo(f"{file} is valid, but was not re-derived: {verdict.why_not}")
        ctx.exit(verdict.exit_code)

    return verify
