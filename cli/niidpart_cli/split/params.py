"""Parameters that several commands have."""

from typing import Any

import click


def declare_file() -> click.Argument:
    return click.Argument(["file"], type=click.Path())


def declare_json(help: str = "For machines.") -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help=help)


def declare_trust() -> click.Option:
    """Of commands that recognise a published file."""
    return click.Option(
        ["--trust-pickle"],
        is_flag=True,
        help="Read a pickle that is not byte for byte a published one.",
    )


def read_trust(trust_pickle: bool) -> dict[str, Any]:
    """Return the options of a format that `declare_trust` stands for."""
    return {"trust_pickle": True} if trust_pickle else {}


def declare_split_out() -> list[click.Parameter]:
    """Where a split is written, and whether something else may be replaced there."""
    return [
        click.Option(
            ["-o", "--out"],
            type=click.Path(dir_okay=False),
            default="split.h5",
            show_default=True,
            help="The split file.",
        ),
        click.Option(
            ["--force"],
            is_flag=True,
            help="Replace what stands there, also where that is another split.",
        ),
    ]


def declare_reading() -> click.Option:
    return click.Option(
        ["--reading"],
        type=click.Choice(["sample", "proportions", "rough-proportions"]),
        help="Take what a party holds for a sample of its proportions, or for these themselves, "
        "rounded once or more than once, whatever the recipe says.",
    )


WHERE = "Where the data set lies, if not where the file says."
WHERE_OR_FILE = "Where the data set lies (for an .npz: the file), if not where the file says."
FOLDER = "Folder that the data set lies in (for one file: the file)."
