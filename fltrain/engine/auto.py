"""Which executor, where the settings leave it open."""

from dataclasses import replace

from .jobs import Cell


def chosen(cell: Cell) -> Cell:
    """The cell with its engine settled."""
    if cell.settings.engine != "auto":
        return cell
    return replace(cell, settings=replace(cell.settings, engine="looped"))
