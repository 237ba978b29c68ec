"""`niidpart diff`."""

import json
from typing import TYPE_CHECKING, Any

import click

from ..command import AdvisingCommand
from ..tables import format_table
from ..terminal import say, to_one_line
from .limits import declare_limits, read_limits
from .params import declare_json, declare_reading
from .progress import show_work

if TYPE_CHECKING:
    from niidpart import Difference
    from niidpart.heterogeneity import Reading

_LONG = 60  # characters of a value that are shown


def diff_command() -> click.Command:
    return AdvisingCommand(
        "diff",
        callback=click.pass_context(diff),
        help="Say what differs between two split files: recipe, source, who holds what, columns, "
        "skew. Exit code 0 for the same digest, 1 for another (or a faulty file).",
        params=[
            click.Argument(["a"], type=click.Path()),
            click.Argument(["b"], type=click.Path()),
            declare_reading(),
            declare_json(),
            *declare_limits(
                "The files come from elsewhere: parse each in a child process with limits.",
                "reading each",
            ),
        ],
    )


def diff(
    ctx: click.Context,
    a: str,
    b: str,
    reading: "Reading | None",
    as_json: bool,
    **limits: Any,
) -> None:
    import niidpart

    with show_work():
        one, two = (niidpart.read(file, **read_limits(limits)) for file in (a, b))
    found = niidpart.diff(one, two, reading=reading)
    if as_json:
        say(json.dumps(found.to_json(), allow_nan=False))
    else:
        say("\n\n".join(_format_blocks(found, a, b)))
    ctx.exit(0 if found.same else 1)


def _format_blocks(found: "Difference", a: str, b: str) -> list[str]:
    """A paragraph for each kind of difference."""
    if found.same:
        return [f"{a} and {b} are the same split, {found.digests[0]}"]
    blocks = [
        f"a  {found.digests[0]}  {a}\nb  {found.digests[1]}  {b}",
        _format_changes("recipe", found.recipe),
        _format_changes("source", found.source),
    ]
    if found.why_not:
        blocks.append(f"rows   not compared: {found.why_not}")
    else:
        blocks.append(_format_parts(found.parts))
    if found.columns:
        columns = []
        for name, n in found.columns.items():
            columns.append(f"{name} ({'not comparable' if n is None else f'{n} parties'})")
        blocks.append(f"columns that differ: {', '.join(columns)}")
    skew = []
    for name, pair in found.skew.items():
        skew.append([name, *("-" if value is None else f"{value:.4f}" for value in pair)])
    by = "corrected" if found.skew_by == "corrected" else "plain value"
    return [*blocks, format_table([f"skew, {by}", "a", "b"], skew)]


def _format_changes(name: str, changes: dict[str, tuple[Any, Any]]) -> str:
    if not changes:
        return f"{name:6} the same"
    lines = [f"{name:6} differs"]
    for field, (of_a, of_b) in changes.items():
        lines.append(f"  {field}: {_shorten(of_a)} | {_shorten(of_b)}")
    return "\n".join(map(to_one_line, lines))


def _shorten(value: Any) -> str:
    """ASCII, so that nothing from a file steers the terminal; of what is long the beginning."""
    text = json.dumps(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."


def _format_parts(parts: dict[str, Any]) -> str:
    if all(part.moved == 0 and part.only == (0, 0) for part in parts.values()):
        return "rows   the same at every party"
    header = ["part", "in a", "in b", "only a", "only b", "moved"]
    rows = []
    for name, part in parts.items():
        alike = ["-" if v is None else f"{v:.4f}" for v in (part.agreement, part.adjusted_rand)]
        rows.append([name, *part.n, *part.only, part.moved, *alike])
    return format_table([*header, "agree, renamed", "adjusted Rand"], rows)
