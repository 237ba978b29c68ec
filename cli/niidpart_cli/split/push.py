"""`niidpart push`."""

import json
from dataclasses import asdict
from typing import Any

import click


def push_command() -> click.Command:
    @click.command(
        help="Publish a split on the Hugging Face Hub: the split file, its rows as parquet, a card, in one commit with a tag. The same split again "
        "changes nothing. Log in first: hf auth login, or set HF_TOKEN."
    )
    @click.argument("file", type=click.Path())
    @click.option(
        "--repo",
        required=True,
        metavar="USER/NAME",
        help="The data set; it is made if it is missing.",
    )
    @click.option("--private", is_flag=True, help="Make it for nobody else to see.")
    @click.option(
        "--dry-run", is_flag=True, help="Say what would be published, and change nothing."
    )
    @click.option(
        "--include-data",
        is_flag=True,
        help="Publish the examples too; whether their licence allows it is yours to know.",
    )
    @click.option(
        "--replace-card",
        is_flag=True,
        help="Also where a README.md stands that niidpart did not write: it is replaced.",
    )
    @click.option(
        "--data-root",
        type=click.Path(),
        help="With --include-data: where the data set lies, if not where the file says.",
    )
    @click.option("--json", "as_json", is_flag=True, help="For machines.")
    def push(
        file: str,
        data_root: str | None,
        as_json: bool,
        dry_run: bool,
        include_data: bool,
        **options: Any,
    ) -> None:
        from niidpart.hub.publishing import push

        if data_root is not None and not include_data:
            raise click.UsageError("--data-root goes with --include-data")
        done = push(
            file, dry_run=dry_run, include_data=include_data, data_root=data_root, **options
        )
        click.echo(json.dumps(asdict(done)) if as_json else _said(done, dry_run))

    return push


def _said(done: Any, dry_run: bool) -> str:
    if not done.changed:
        return f"{done.url} holds this split already; nothing was changed\ntag     {done.tag}\ncommit  {done.commit}"
    lines = [f"{'would publish' if dry_run else 'published'} {done.url}", f"tag     {done.tag}"]
    lines += [f"commit  {done.commit}"] * (not dry_run)
    lines += [
        f"  {size:>11,} bytes  {path}{' (replaced)' if path in done.replaced else ''}"
        for path, size in done.files.items()
    ]
    return "\n".join([*lines, *(f"  {'removed':>17}  {path}" for path in done.removed)])
