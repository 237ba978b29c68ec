"""The options of `niidpart make` that do not depend on a strategy or a source."""

import click

from ..options import EntryName, KnownName, declare_data_memory, declare_data_root
from .handed_over import declare_handed_over
from .params import FOLDER, declare_json, declare_split_out


def declare_what() -> list[click.Parameter]:
    """Of which data, and by which strategy."""
    from niidpart.data import SOURCES
    from niidpart.making.completion import list_peers
    from niidpart.recipes import list_recipes

    return [
        click.Option(
            ["--dataset"],
            type=EntryName("niidpart.sources"),
            help=f"{', '.join(SOURCES.names())}; or PATH.npz, .csv, .parquet, .libsvm, a folder "
            "of images, hf:ID, hf:FOLDER.  [the strategy's namesake, else digits]",
        ),
        declare_data_root(FOLDER),
        declare_data_memory(),
        click.Option(
            ["--strategy"],
            type=EntryName("niidpart.strategies"),
            help="A name, or file.py:function.",
        ),
        click.Option(
            ["--recipe"],
            type=KnownName(list_recipes),
            metavar="NAME",
            help="A published setting, such as niid/mnist-dir0.5 (niidpart recipes lists them); "
            "options override.",
        ),
        click.Option(
            ["--like"],
            type=KnownName(list_peers),
            metavar="PEER[@VERSION]",
            help="The strategy as a peer's published code has it, row by row: "
            f"{', '.join(list_peers())}.",
        ),
        click.Option(
            ["--transform"],
            multiple=True,
            metavar="NAME:KEY=VALUE,...",
            help="What parties' features look like; repeatable, in order.",
        ),
        click.Option(
            ["--noise"],
            type=float,
            metavar="SIGMA",
            help="Short for --transform noise:sigma=SIGMA, after the others.",
        ),
    ]


def declare_parties() -> list[click.Parameter]:
    """Parties, seed, and the parts that they hold out."""
    return [
        click.Option(
            ["--parties"], type=int, help="Number of parties.  [the strategy's own, else 10]"
        ),
        click.Option(
            ["--seed"], type=int, help="The same seed gives the same split, for years.  [0]"
        ),
        click.Option(
            ["--val"],
            type=float,
            help="Fraction of each party's examples for its own validation part.",
        ),
        click.Option(
            ["--test"], type=float, help="Fraction of each party's examples for its own test part."
        ),
        click.Option(
            ["--pool/--no-pool"],
            default=None,
            help="The data set's own test rows are dealt too; there is no global test set then.  "
            "[the recipe's, else no]",
        ),
        click.Option(
            ["--long-tail"],
            type=float,
            metavar="FACTOR",
            help="Before anybody deals: keep fewer and fewer training examples from class to "
            "class, so that the first class has FACTOR times as many as the last (CIFAR-10-LT).",
        ),
        *declare_handed_over(),
    ]


def declare_output() -> list[click.Parameter]:
    """A wanted skew, and where the split goes."""
    return [
        click.Option(
            ["--target"],
            metavar="MEASURE=VALUE",
            help="Look for the number of the strategy (beta, k of labels, ...) that gives this "
            "skew to the whole, such as hellinger=0.6 (0 IID, 1 one class): its plain value, not "
            "corrected for chance.",
        ),
        click.Option(
            ["--tolerance"],
            type=float,
            default=0.01,
            show_default=True,
            help="How near to --target.",
        ),
        *declare_split_out(),
        click.Option(
            ["--disk-from"],
            type=click.IntRange(min=0),
            metavar="ROWS",
            help="From so many rows on the split is made on the disk, beside the split file, in "
            "pieces: .npy and parquet, strategies that deal by class.  [67108864]",
        ),
        declare_json("Print what `show --json` prints."),
    ]
