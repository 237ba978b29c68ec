"""`niidpart import`."""

import json
from typing import Any

import click

from ..program import Entry, given, given_besides, union_options
from .report import as_json, summary


def import_command() -> click.Command:
    from niidpart.data import SOURCES
    from niidpart.interop.importing import IMPORTERS

    own = union_options(IMPORTERS.all_options())
    taken = {option.name for option in own}
    source_options = [
        option for option in union_options(SOURCES.all_options()) if option.name not in taken
    ]
    fixed = [
        click.Argument(["folder"], type=click.Path()),
        click.Option(
            ["--from", "format"],
            required=True,
            type=Entry("niidpart.formats"),
            help="One of the above.",
        ),
        click.Option(
            ["--dataset"],
            type=Entry("niidpart.sources"),
            help="The data set whose rows the folder names, as for make.",
        ),
        click.Option(
            ["--data-root"],
            type=click.Path(),
            help="Folder that the data set lies in (for one file: the file).",
        ),
        click.Option(
            ["--pool/--no-pool"],
            default=None,
            help="The rows are of training and test set together, as for make.",
        ),
        click.Option(
            ["-o", "--out"],
            type=click.Path(dir_okay=False),
            default="split.h5",
            show_default=True,
            help="The split file.",
        ),
        click.Option(
            ["--json", "for_machines"], is_flag=True, help="Print what `show --json` prints."
        ),
    ]

    def import_(**values: Any) -> None:
        import niidpart

        options = given_besides(values, [*fixed, *source_options])
        source = given(values, source_options) | (
            {} if values["pool"] is None else {"pool": values["pool"]}
        )
        if values["dataset"] is None and (source or values["data_root"] is not None):
            raise click.UsageError("options of a data set need --dataset")
        data = (
            None
            if values["dataset"] is None
            else niidpart.load(values["dataset"], values["data_root"], **source)
        )
        split = niidpart.import_(values["folder"], values["format"], data=data, **options)
        niidpart.write(split, values["out"])
        click.echo(
            json.dumps(as_json(split))
            if values["for_machines"]
            else f"{summary(split)}\nwritten to {values['out']}"
        )

    names = "\n".join(f"  {name:12} {IMPORTERS.summary(name)}" for name in IMPORTERS.names())
    return click.Command(
        "import",
        params=[*fixed, *own, *source_options],
        callback=import_,
        help=f"Make a split file of what another library wrote.\n\n\b\nFormats:\n{names}\n\n\b\n"
        "Examples:\n  niidpart import rows --from csv --dataset digits\n  niidpart import femnist --from leaf -o femnist.h5",
    )
