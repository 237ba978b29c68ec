"""Markdown that a card is made of."""

from collections.abc import Sequence

__all__ = ["render_table"]


def render_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    rule = ["---"] * len(header)
    return "\n".join(_render_row(row) for row in [header, rule, *rows])


def _render_row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
