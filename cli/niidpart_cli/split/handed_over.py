"""What is handed over beside a data set: labels of people, embeddings."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from niidpart import Data, Recipe


def declare_handed_over() -> list[click.Parameter]:
    """`--noisy-labels` and `--embeddings`."""
    return [
        click.Option(
            ["--noisy-labels"],
            metavar="FILE[:NAME]",
            help="Labels that people gave, for --transform human-noise: CIFAR-N's "
            "CIFAR-10_human.pt:worse_label, an .npz or .npy of class ids in the data set's order.",
        ),
        click.Option(
            ["--embeddings"],
            metavar="FILE[:NAME]",
            help="An .npy or .npz of numbers [N, D] in the data set's order, for --strategy "
            "semantic.  [the features]",
        ),
    ]


def hand_over(data: "Data", noisy_labels: str | None, embeddings: str | None) -> "Data":
    """Return the data with what the files hold."""
    from niidpart.data.annotations import read_embeddings_file, read_noisy_labels

    if noisy_labels:
        data = read_noisy_labels(data, *_split_name(noisy_labels))
    if embeddings:
        data = read_embeddings_file(data, *_split_name(embeddings))
    return data


def require_use(recipe: "Recipe", noisy_labels: str | None, embeddings: str | None) -> None:
    """Raise UsageError for a file that the recipe makes nothing of."""
    from niidpart.errors import UsageError
    from niidpart.making.handed_over import EMBEDDINGS, LABELS

    options = [recipe.params, *(step.params for step in recipe.transforms)]
    for given, option, flag, advice in (
        (noisy_labels, LABELS, "--noisy-labels", "--transform human-noise"),
        (embeddings, EMBEDDINGS, "--embeddings", "--strategy semantic"),
    ):
        if given and not any(option in each for each in options):
            raise UsageError(f"{flag} is given and nothing reads it; add {advice}, or leave it out")


def _split_name(text: str) -> tuple[str, str]:
    """Return (file, name) of `FILE:NAME`, "" for no name."""
    file, colon, name = text.rpartition(":")
    return (file, name) if colon and "/" not in name else (text, "")
