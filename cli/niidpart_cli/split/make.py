"""`niidpart make`."""

import json
from typing import Any

import click

from niidpart.errors import UsageError

from ..program import Entry, Pluggable, click_type, given, given_besides, listing, union_options
from .report import as_json, summary


def make_command() -> click.Command:
    from niidpart.data import SOURCES
    from niidpart.strategies import STRATEGIES
    from niidpart.transforms import TRANSFORMS

    strategy_options = union_options([*STRATEGIES.all_options(), *TRANSFORMS.all_options()])
    source_options = union_options(SOURCES.all_options())
    asked_for, placed = _what(), _how_and_where()
    fixed = [*asked_for, *placed]

    def make(**values: Any) -> None:
        import niidpart

        data = _data(values, given(values, source_options))
        asked = {
            name: values[name]
            for name in ("strategy", "recipe", "like", "seed", "val", "test")
            if values[name] is not None
        }
        asked |= {
            "n_parties": values["parties"],
            "transforms": _transforms(values) or None,
        } | given_besides(values, [*fixed, *source_options])
        split = _tuned(data, values, asked) if values["target"] else niidpart.make(data, **asked)
        niidpart.write(split, values["out"])
        click.echo(
            json.dumps(as_json(split))
            if values["as_json"]
            else f"{summary(split)}\nwritten to {values['out']}"
        )

    return Pluggable(
        "make",
        plug="--strategy",
        own_options=lambda name: union_options(
            (name, p) for p in STRATEGIES.options(STRATEGIES.find(name)).values()
        ),
        params=[*asked_for, *strategy_options, *placed, *source_options],
        callback=make,
        help=f"Split a data set among parties, reproducibly.\n\n\b\nStrategies:\n{listing(STRATEGIES)}\n\n\b\n"
        f"Transforms (as a strategy: homo with that transform):\n{listing(TRANSFORMS)}\n\n\b\n"
        "Examples:\n  niidpart make --strategy dir --beta 0.5\n"
        "  niidpart make --dataset mnist --data-root ~/data --strategy dir --beta 0.1 --noise 0.1 --parties 100 -o mnist.h5\n"
        "  niidpart make --recipe niid/mnist-dir0.5 --data-root ~/data\n"
        "  niidpart make --strategy dir --target hellinger=0.6",
    )


def _what() -> list[click.Parameter]:
    """Of which data, and by which strategy."""
    from niidpart.data import SOURCES
    from niidpart.making.completion import list_peers

    return [
        click.Option(
            ["--dataset"],
            type=Entry("niidpart.sources"),
            help=f"{', '.join(SOURCES.names())}; or PATH.npz, .csv, .parquet, .libsvm, a folder of images, hf:ID, hf:FOLDER.  "
            "[the strategy's namesake, else digits]",
        ),
        click.Option(
            ["--data-root"],
            type=click.Path(),
            help="Folder that the data set lies in (for one file: the file).",
        ),
        click.Option(
            ["--strategy"],
            type=Entry("niidpart.strategies"),
            help="One of the above, or file.py:function.",
        ),
        click.Option(
            ["--recipe"],
            metavar="NAME",
            help="A published setting, such as niid/mnist-dir0.5 (niidpart recipes lists them); options override.",
        ),
        click.Option(
            ["--like"],
            metavar="PEER",
            help=f"The strategy as a peer's published code has it, row by row: {', '.join(list_peers())}.",
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


def _how_and_where() -> list[click.Parameter]:
    """Parties, seed, parts, a wanted skew, and where it goes."""
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
            ["--target"],
            metavar="MEASURE=VALUE",
            help="Look for the beta that gives this skew to the whole, such as hellinger=0.6 (0 IID, 1 one class).",
        ),
        click.Option(
            ["--tolerance"],
            type=float,
            default=0.01,
            show_default=True,
            help="How near to --target.",
        ),
        click.Option(
            ["-o", "--out"],
            type=click.Path(dir_okay=False),
            default="split.h5",
            show_default=True,
            help="The split file.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print what `show --json` prints."),
        click.Option(
            ["--pool/--no-pool"],
            default=None,
            help="The data set's own test rows are dealt too; there is no global test set then.  [the recipe's, else no]",
        ),
    ]


def _data(values: dict[str, Any], options: dict[str, Any]) -> Any:
    """The data set that was asked for, else the recipe's, else the strategy's namesake, else the digits."""
    import niidpart
    from niidpart.data import SOURCES
    from niidpart.recipes import find_recipe

    if values["strategy"] is None and values["recipe"] is None:
        raise click.UsageError("give --strategy or --recipe")
    named = find_recipe(values["recipe"]) if values["recipe"] else None
    namesake = values["strategy"] if values["strategy"] in SOURCES.names() else None
    dataset = values["dataset"] or (named.dataset if named else namesake or "digits")
    source = dict(named.source) if named else {}
    if (
        named and dataset != named.dataset
    ):  # another data set has other options, but is pooled all the same
        source = {"pool": source["pool"]} if "pool" in source else {}
    pool = {} if values["pool"] is None else {"pool": values["pool"]}
    return niidpart.load(dataset, values["data_root"], **source | options | pool)


def _tuned(data: Any, values: dict[str, Any], asked: dict[str, Any]) -> Any:
    """The split of --target MEASURE=VALUE, every try on stderr."""
    import niidpart

    measure, _, number = values["target"].partition("=")
    try:
        target = float(number)
    except ValueError:
        raise click.UsageError(
            f"--target is {values['target']!r}; write MEASURE=VALUE, such as hellinger=0.6"
        ) from None
    option = "beta"

    def after(x: float, found: float) -> None:
        click.echo(f"{option} {x:g}: {measure} {found:.4f}", err=True)

    if asked.get("beta") is not None:
        raise click.UsageError("--target looks for beta itself; leave out --beta")
    return niidpart.tune(
        data,
        **asked,
        measure=measure,
        target=target,
        tolerance=values["tolerance"],
        option=option,
        after=after,
    )


def _transforms(values: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    from niidpart.transforms import TRANSFORMS

    noise = [("noise", {"sigma": values["noise"]})] if values["noise"] is not None else []
    return [_transform(text, TRANSFORMS) for text in values["transform"]] + noise


def _transform(text: str, registry: Any) -> tuple[str, dict[str, Any]]:
    """`noise:sigma=0.1,level=std` as (name, options), each value in the type of its option."""
    name, _, rest = text.partition(":")
    pairs = [pair.partition("=") for pair in rest.split(",") if pair]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise UsageError(
            f"--transform {text!r}: {wrong[0]!r} has no value; write NAME:KEY=VALUE,KEY=VALUE"
        )
    declared = registry.options(registry.find(name))
    options: dict[str, Any] = {}
    for key, _, value in pairs:
        kind = declared[key].annotation if key in declared else str
        options[key] = click_type(kind).convert(value, None, None)
    return name, options
