"""`niidpart verify`."""

import json

import click


def verify_command() -> click.Command:
    @click.command(help="Check every rule of the format, and derive the split again from its recipe and its data. Exit code 0, 1 (faults) or 3.")
    @click.argument("file", type=click.Path())
    @click.option("--data-root", type=click.Path(), help="Where the data set lies (for an .npz: the file), if not where the file says.")
    @click.option("--json", "as_json", is_flag=True, help="For machines.")
    @click.pass_context
    def verify(ctx: click.Context, file: str, data_root: str | None, as_json: bool) -> None:
        import niidpart

        verdict = niidpart.verify(file, data_root=data_root)
        code = 1 if verdict.faults else 0 if verdict.derived else 3
        if as_json:
            faults = [{"rule": f.rule, "message": f.message} for f in verdict.faults]
            click.echo(json.dumps({"file": file, "faults": faults, "derived": verdict.derived, "why_not": verdict.why_not, "exit": code}))
        elif verdict.faults:
            click.echo(f"{file} breaks {len(verdict.faults)} rules of docs/format.md:")
            click.echo("\n".join(f"  {fault}" for fault in verdict.faults))
        elif verdict.derived:
            click.echo(f"{file} is valid, and its recipe gives the same split again: {niidpart.read(file).digest}")
        else:
            click.echo(f"{file} is valid, but was not re-derived: {verdict.why_not}")
        ctx.exit(code)

    return verify
