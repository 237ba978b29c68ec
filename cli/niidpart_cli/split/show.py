"""`niidpart show`."""

import json
from typing import Any

import click

from .elsewhere import elsewhere, limits_of
from .report import as_json, measures, parties, summary
from .report import features as features_of

SHOWN = 20  # parties in the table, unless --all


def show_command() -> click.Command:
    @elsewhere()
    @click.command(
        help="Print what a split file holds: recipe, source, digest, how skewed it is (docs/heterogeneity.md), and who holds what."
    )
    @click.argument("file", type=click.Path())
    @click.option("--all", "everyone", is_flag=True, help=f"All parties, not the first {SHOWN}.")
    @click.option(
        "--features",
        type=click.Choice(["energy", "mmd"]),
        help="Compare the parties' features too; reads the data set.",
    )
    @click.option(
        "--pca", type=int, metavar="N", help="With --features: on N principal components."
    )
    @click.option(
        "--data-root",
        type=click.Path(),
        help="Where the data set lies (for an .npz: the file), if not where the file says.",
    )
    @click.option("--json", "for_machines", is_flag=True, help="For machines.")
    def show(
        file: str,
        everyone: bool,
        features: str | None,
        pca: int | None,
        data_root: str | None,
        for_machines: bool,
        **limits: Any,
    ) -> None:
        import niidpart
        from niidpart.data.of_split import open_data

        if features is None and (pca is not None or data_root is not None):
            raise click.UsageError("--pca and --data-root go with --features")
        split = niidpart.read(file, **limits_of(limits))
        found = (
            None
            if features is None
            else niidpart.feature_skew(
                split, open_data(split, data_root), measure=features, pca=pca
            )
        )
        if found is not None and any(t.params.get("fresh") for t in split.recipe.transforms):
            click.echo(
                "the noise of this split is drawn afresh in training; the distance of features is without it",
                err=True,
            )
        if for_machines:
            extra = {} if found is None else {"features": found.to_json()}
            click.echo(json.dumps(as_json(split) | extra, allow_nan=False))
            return
        blocks = [
            summary(split),
            measures(split.skew),
            parties(split, split.n_parties if everyone else SHOWN),
        ]
        click.echo(
            "\n\n".join(blocks if found is None else [*blocks[:2], features_of(found), blocks[2]])
        )

    return show
