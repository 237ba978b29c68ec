"""`niidpart verify`."""

import json

import click


def verify_command() -> click.Command:
    @click.command(help="Check every rule of the format, and derive the split again from its recipe and its data. Exit code 0, 1 (faults) or 3.")
    @click.argument("file", type=click.Path())
    @click.option("--data-root", type=click.Path(), help="Where the data set lies (for an .npz: the file), if not where the file says.")
    @click.option("--untrusted", is_flag=True, help="The file comes from elsewhere: parse it in a child process with limits, ignore its hint.")
    @click.option("--max-memory", type=click.IntRange(min=1), metavar="MB", help="With --untrusted: what reading may take (2048).")
    @click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="With --untrusted: what reading may take (60).")
    @click.option("--json", "as_json", is_flag=True, help="For machines.")
    @click.pass_context
    def verify(
        ctx: click.Context, file: str, data_root: str | None, untrusted: bool, max_memory: int | None, timeout: float | None, as_json: bool
    ) -> None:
        import niidpart

        memory = None if max_memory is None else max_memory << 20
        verdict = niidpart.verify(file, data_root=data_root, untrusted=untrusted, max_memory=memory, timeout=timeout)
        if as_json:
            click.echo(json.dumps({"file": file} | verdict.to_json()))
        elif verdict.faults:
            click.echo(f"{file} breaks {len(verdict.faults)} rules of docs/format.md:")
            click.echo("\n".join(f"  {fault}" for fault in verdict.faults))
        elif verdict.derived:
            click.echo(f"{file} is valid, and its recipe gives the same split again: {verdict.digest}")
        else:
            click.echo(f"{file} is valid, but was not re-derived: {verdict.why_not}")
        ctx.exit(verdict.exit_code)

    return verify
