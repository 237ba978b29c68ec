"""`niidpart export`."""

from typing import Any

import click

from ..program import Entry, Pluggable, given_besides, listing, union_options
from .elsewhere import elsewhere_options, limits_of


def export_command() -> click.Command:
    from niidpart.formats import FORMATS

    fixed = [
        click.Argument(["file"], type=click.Path()),
        click.Option(
            ["--to"],
            required=True,
            type=Entry("niidpart.formats"),
            help="One of the above, or file.py:function.",
        ),
        click.Option(
            ["--out"],
            required=True,
            type=click.Path(file_okay=False),
            help="The folder; it must be empty or not there.",
        ),
        click.Option(
            ["--data-root"],
            type=click.Path(),
            help="Where the data set lies, if not where the file says.",
        ),
        click.Option(
            ["--lossy"],
            is_flag=True,
            help="Leave out what the format cannot say; else it is named and refused.",
        ),
        *elsewhere_options(),
    ]

    def export(**values: Any) -> None:
        import niidpart
        from niidpart.data.of_split import open_data

        format, asked = FORMATS.find(values["to"]), values.get("include_data")
        if (
            "include_data" in FORMATS.options(format)
            and not asked
            and values["data_root"] is not None
        ):
            raise click.UsageError(
                f"--data-root goes with --include-data in the format {values['to']}"
            )
        needed = FORMATS.record(values["to"]).needs_data or asked or values["data_root"]
        split = niidpart.read(values["file"], **limits_of(values))
        data = open_data(split, values["data_root"]) if needed else None
        path = niidpart.export(
            split,
            data,
            values["to"],
            values["out"],
            lossy=values["lossy"],
            **given_besides(values, fixed),
        )
        click.echo(f"written to {path}")

    return Pluggable(
        "export",
        plug="--to",
        own_options=lambda name: union_options(
            (name, p) for p in FORMATS.options(FORMATS.find(name)).values()
        ),
        params=[*fixed, *union_options(FORMATS.all_options())],
        callback=export,
        help=f"Write a split in the layout of another library, whole or not at all.\n\n\b\nFormats:\n{listing(FORMATS)}\n\n\b\n"
        "Examples:\n  niidpart export split.h5 --to csv --out rows\n  niidpart export split.h5 --to flower --out federated\n"
        "  niidpart export split.h5 --to hf --include-data --out for-the-hub",
    )
