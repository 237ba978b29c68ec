"""`niidpart diff`."""

import json
from typing import Any

import click

from ..program import table
from .elsewhere import elsewhere, limits_of


def diff_command() -> click.Command:
    @elsewhere(
        "The files come from elsewhere: parse each in a child process with limits.", "reading each"
    )
    @click.command(
        help="Say what differs between two split files: recipe, source, who holds what, columns, skew. "
        "Exit code 0 for the same digest, 1 for another (or a faulty file)."
    )
    @click.argument("a", type=click.Path())
    @click.argument("b", type=click.Path())
    @click.option("--json", "for_machines", is_flag=True, help="For machines.")
    @click.pass_context
    def diff(ctx: click.Context, a: str, b: str, for_machines: bool, **limits: Any) -> None:
        import niidpart

        found = niidpart.diff(*(niidpart.read(file, **limits_of(limits)) for file in (a, b)))
        click.echo(
            json.dumps(found.to_json(), allow_nan=False)
            if for_machines
            else "\n\n".join(_blocks(found, a, b))
        )
        ctx.exit(0 if found.same else 1)

    return diff


def _blocks(found: Any, a: str, b: str) -> list[str]:
    """A paragraph for each kind of difference."""
    if found.same:
        return [f"{a} and {b} are the same split, {found.digests[0]}"]
    digests = f"a  {found.digests[0]}  {a}\nb  {found.digests[1]}  {b}"
    blocks = [digests, *(_changes(name, getattr(found, name)) for name in ("recipe", "source"))]
    blocks.append(f"rows   not compared: {found.why_not}" if found.why_not else _parts(found.parts))
    if found.columns:
        said = (
            f"{name} ({'not comparable' if n is None else f'{n} parties'})"
            for name, n in found.columns.items()
        )
        blocks.append(f"columns that differ: {', '.join(said)}")
    skew = [
        [name, *("-" if v is None else f"{v:.4f}" for v in pair)]
        for name, pair in found.skew.items()
    ]
    return [*blocks, table(["skew, corrected", "a", "b"], skew)]


def _changes(name: str, changes: dict[str, tuple[Any, Any]]) -> str:
    if not changes:
        return f"{name:6} the same"
    return "\n".join(
        [
            f"{name:6} differs",
            *(f"  {field}: {_short(x)} | {_short(y)}" for field, (x, y) in changes.items()),
        ]
    )


def _short(value: Any) -> str:
    """ASCII, so that nothing from a file steers the terminal; of what is long the beginning."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _parts(parts: dict[str, Any]) -> str:
    if all(p.moved == 0 and p.only == (0, 0) for p in parts.values()):
        return "rows   the same at every party"
    rows = []
    for name, p in parts.items():
        agreement, rand = ("-" if v is None else f"{v:.4f}" for v in (p.agreement, p.adjusted_rand))
        rows.append([name, *p.n, *p.only, p.moved, agreement, rand])
    return table(
        ["part", "in a", "in b", "only a", "only b", "moved", "agree, renamed", "adjusted Rand"],
        rows,
    )
