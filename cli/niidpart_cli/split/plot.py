"""`niidpart plot`."""

from pathlib import Path
from typing import Any

import click

from ..program import Entry, Pluggable, given_besides, listing, union_options
from .elsewhere import elsewhere_options, limits_of


def plot_command() -> click.Command:
    from niidpart.plot import PICTURES

    fixed = [
        click.Argument(["file"], type=click.Path()),
        click.Option(
            ["--kind"],
            type=Entry("niidpart.plot"),
            default="heatmap",
            show_default=True,
            help="One of the above, or file.py:function.",
        ),
        click.Option(
            ["--data-root"],
            type=click.Path(),
            help="Where the data set lies, if not where the file says; for kinds that show features.",
        ),
        click.Option(
            ["--parties"],
            metavar="0,3,7-9",
            help="Which parties.  [all, or as many as can be seen]",
        ),
        click.Option(
            ["--medium"],
            type=click.Choice(["screen", "print", "column"]),
            default="screen",
            show_default=True,
            help="9 inches at 160 dpi; a page's 7 inches or a column's 3.5 at 300 dpi.",
        ),
        click.Option(
            ["-o", "--out"],
            type=click.Path(dir_okay=False),
            help="The picture.  [the split's name, the kind's if not heatmap, .png]",
        ),
        *elsewhere_options(),
    ]

    def plot(**values: Any) -> None:
        import niidpart
        from niidpart.data.of_split import open_data
        from niidpart.plot import needs_data, save

        kind, file = values["kind"], Path(values["file"])
        split = niidpart.read(file, **limits_of(values))
        out = values["out"] or file.with_name(f"{file.stem}{_suffix(kind)}.png")
        data = open_data(split, values["data_root"]) if needs_data(kind) else None
        options = given_besides(values, fixed)
        try:
            path = save(
                split,
                out,
                kind,
                data=data,
                parties=values["parties"],
                medium=values["medium"],
                **options,
            )
        except ModuleNotFoundError as error:
            if error.name != "sklearn":
                raise
            raise click.ClickException(str(error)) from error
        click.echo(f"drawn in {path}")

    return Pluggable(
        "plot",
        plug="--kind",
        own_options=lambda name: union_options(
            (name, p) for p in PICTURES.options(PICTURES.find(name)).values()
        ),
        params=[*fixed, *union_options(PICTURES.all_options())],
        callback=plot,
        help=f"Draw a split. The ending of the file says which format: png, svg or pdf.\n\n\b\nKinds:\n{listing(PICTURES)}\n\n\b\n"
        "Examples:\n  niidpart plot split.h5\n  niidpart plot split.h5 --kind bars --order size --medium print -o bars.pdf\n"
        "  niidpart plot split.h5 --kind noise --parties 0,4,9",
    )


def _suffix(kind: str) -> str:
    """What is added to the split's name, so that kinds do not replace one another."""
    return "" if kind == "heatmap" else f"-{kind.rpartition(':')[2]}"
