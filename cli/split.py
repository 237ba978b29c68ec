"""`niidpart`: make, show, verify and plot splits."""

import json
from pathlib import Path
from typing import Any

import click

from .program import Pluggable, Program, click_type, given, given_besides, listing, table, union_options

_SHOWN = 20  # parties in the table, unless --all


def _make() -> click.Command:
    from niidpart.data import SOURCES
    from niidpart.make import STRATEGIES, TRANSFORMS

    strategy_options = union_options([*STRATEGIES.union(), *TRANSFORMS.union()])
    source_options = union_options(SOURCES.union())
    fixed = [
        click.Option(["--dataset"], help=f"{', '.join(SOURCES.names())}, or PATH.npz.  [the strategy's namesake, else digits]"),
        click.Option(["--data-root"], type=click.Path(), help="Folder that the data set lies in (for an .npz: the file)."),
        click.Option(["--strategy"], required=True, help="One of the above, or file.py:function."),
        click.Option(["--transform"], multiple=True, metavar="NAME:KEY=VALUE,...", help="What parties' features look like; repeatable, in order."),
        click.Option(["--noise"], type=float, metavar="SIGMA", help="Short for --transform noise:sigma=SIGMA, after the others."),
        click.Option(["--parties"], type=int, help="Number of parties.  [the strategy's own, else 10]"),
        click.Option(["--seed"], type=int, default=0, show_default=True, help="The same seed gives the same split, for years."),
        click.Option(["--val"], type=float, default=0.0, help="Fraction of each party's examples for its own validation part."),
        click.Option(["--test"], type=float, default=0.0, help="Fraction of each party's examples for its own test part."),
        click.Option(["-o", "--out"], type=click.Path(dir_okay=False), default="split.h5", show_default=True, help="The split file."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print what `show --json` prints."),
    ]

    def make(**values: Any) -> None:
        import niidpart

        strategy = values["strategy"]
        dataset = values["dataset"] or (strategy if strategy in SOURCES.names() else "digits")
        transforms = [_transform(text, TRANSFORMS) for text in values["transform"]]
        transforms += [("noise", {"sigma": values["noise"]})] if values["noise"] is not None else []
        split = niidpart.make(
            niidpart.load(dataset, values["data_root"], **given(values, source_options)),
            strategy,
            n_parties=values["parties"],
            seed=values["seed"],
            transforms=transforms,
            val=values["val"],
            test=values["test"],
            **given_besides(values, [*fixed, *source_options]),
        )
        niidpart.write(split, values["out"])
        click.echo(json.dumps(_as_json(split)) if values["as_json"] else f"{_summary(split)}\nwritten to {values['out']}")

    return Pluggable(
        "make",
        plug="--strategy",
        own_options=lambda name: union_options((name, p) for p in STRATEGIES.options(STRATEGIES.find(name)).values()),
        params=[*fixed[:5], *strategy_options, *fixed[5:], *source_options],
        callback=make,
        help=f"Split a data set among parties, reproducibly.\n\n\b\nStrategies:\n{listing(STRATEGIES)}\n\n\b\n"
        f"Transforms (as a strategy: homo with that transform):\n{listing(TRANSFORMS)}\n\n\b\n"
        "Examples:\n  niidpart make --strategy dir --beta 0.5\n"
        "  niidpart make --dataset mnist --data-root ~/data --strategy dir --beta 0.1 --noise 0.1 --parties 100 -o mnist.h5",
    )


def _show() -> click.Command:
    @click.command(help="Print what a split file holds: recipe, source, digest, and who holds what.")
    @click.argument("file", type=click.Path())
    @click.option("--all", "everyone", is_flag=True, help=f"All parties, not the first {_SHOWN}.")
    @click.option("--json", "as_json", is_flag=True, help="For machines.")
    def show(file: str, everyone: bool, as_json: bool) -> None:
        import niidpart

        split = niidpart.read(file)
        if as_json:
            click.echo(json.dumps(_as_json(split)))
        else:
            click.echo(f"{_summary(split)}\n\n{_parties(split, split.n_parties if everyone else _SHOWN)}")

    return show


def _verify() -> click.Command:
    @click.command(help="Check every rule of the format, and derive the split again from its recipe and its data. Exit code 0, 1 (faults) or 3.")
    @click.argument("file", type=click.Path())
    @click.option("--data-root", type=click.Path(), help="Where the data set lies (for an .npz: the file), if not where the file says.")
    @click.option("--json", "as_json", is_flag=True, help="For machines.")
    @click.pass_context
    def verify(ctx: click.Context, file: str, data_root: str | None, as_json: bool) -> None:
        import niidpart

        verdict = niidpart.verify(file, data_root=data_root)
        code = 1 if verdict.faults else 0 if verdict.derived else 3
        if as_json:
            faults = [{"rule": f.rule, "message": f.message} for f in verdict.faults]
            click.echo(json.dumps({"file": file, "faults": faults, "derived": verdict.derived, "why_not": verdict.why_not, "exit": code}))
        elif verdict.faults:
            click.echo(f"{file} breaks {len(verdict.faults)} rules of docs/format.md:")
            click.echo("\n".join(f"  {fault}" for fault in verdict.faults))
        elif verdict.derived:
            click.echo(f"{file} is valid, and its recipe gives the same split again: {niidpart.read(file).digest}")
        else:
            click.echo(f"{file} is valid, but was not re-derived: {verdict.why_not}")
        ctx.exit(code)

    return verify


def _plot() -> click.Command:
    from niidpart.plot import PICTURES

    @click.command(help="Draw who holds what. The ending of the file says which format: png, svg or pdf.")
    @click.argument("file", type=click.Path())
    @click.option("--kind", type=click.Choice(PICTURES.names()), default="heatmap", show_default=True, help="Which picture.")
    @click.option("-o", "--out", type=click.Path(dir_okay=False), help="The picture.  [the split's name, with .png]")
    def plot(file: str, kind: str, out: str | None) -> None:
        import niidpart
        from niidpart.plot import save

        click.echo(f"drawn in {save(niidpart.read(file), out or Path(file).with_suffix('.png'), kind)}")

    return plot


def _transform(text: str, registry: Any) -> tuple[str, dict[str, Any]]:
    """`noise:sigma=0.1,level=std` as (name, options), each value in the type of its option."""
    name, _, rest = text.partition(":")
    pairs = [pair.partition("=") for pair in rest.split(",") if pair]
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise ValueError(f"--transform {text!r}: {wrong[0]!r} has no value; write NAME:KEY=VALUE,KEY=VALUE")
    declared = registry.options(registry.find(name))
    options: dict[str, Any] = {}
    for key, _, value in pairs:
        kind = declared[key].annotation if key in declared else str
        options[key] = click_type(kind).convert(value, None, None)
    return name, options


def _summary(split: Any) -> str:
    from niidpart.plot import title

    sizes = split.train.sizes
    moved = len(split.draws["moved"]) if "moved" in split.draws else 0
    lines = [
        title(split),
        f"digest {split.digest}",
        f"data   {split.source.name}: {split.source.n} examples of {len(split.source.class_names)} classes; global test set {split.source.n_test}",
        f"train  {split.train.n} examples; a party has {sizes.min()} to {sizes.max()}",
    ]
    lines += [f"{name:6} {part.n} examples, at the parties" for name, part in split.parts.items() if name != "train" and part.n]
    if moved:
        lines.append(f"moved  {moved} examples to parties that had fewer than min_size {split.recipe.params.get('min_size')}")
    if split.n_unheld:
        lines.append(f"nobody holds {split.n_unheld} examples")
    return "\n".join(lines)


def _parties(split: Any, shown: int) -> str:
    """Sizes and classes of each party; the counts themselves where the classes are few."""
    counts = split.train.counts
    few = counts.shape[1] <= 12
    extra = [name for name in ("val", "test") if split.parts[name].n]
    header = ["party", "train", *extra, "classes", *(split.source.class_names if few else ["largest class"])]
    rows = []
    for p in range(min(shown, split.n_parties)):
        last = counts[p].tolist() if few else [f"{100 * counts[p].max() / max(counts[p].sum(), 1):.0f}%"]
        rows.append([p, split.train.sizes[p], *(split.parts[name].sizes[p] for name in extra), int((counts[p] > 0).sum()), *last])
    more = f"\n... and {split.n_parties - shown} parties more (--all)" if shown < split.n_parties else ""
    return table(header, rows) + more


def _as_json(split: Any) -> dict[str, Any]:
    return {
        "digest": split.digest,
        "recipe": split.recipe.to_json(),
        "source": split.source.to_json(),
        "unheld": split.n_unheld,
        "parts": {name: {"n": part.n, "sizes": part.sizes.tolist(), "counts": part.counts.tolist()} for name, part in split.parts.items() if part.n},
        "columns": {name: column.tolist() for name, column in split.columns.items()},
    }


main = Program(
    "niidpart",
    help="Reproducible federated splits: make, show, verify and draw them.",
    makers={
        "make": ("Split a data set among parties.", _make),
        "show": ("Print what a split file holds.", _show),
        "verify": ("Check a split file and derive it again.", _verify),
        "plot": ("Draw who holds what.", _plot),
    },
)
main = click.version_option(package_name="niidpart", prog_name="niidpart")(main)

if __name__ == "__main__":
    main()
