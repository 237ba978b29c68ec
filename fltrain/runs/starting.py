"""The states that runs start from: those of round 0, or of runs that resume."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from .. import tree
from ..engine.jobs import Cell
from ..interface import State
from .calibrating import require_calibration
from .expected_metrics import require_stop_metric
from .folder import RunFolder
from .internals import describe_internals
from .states import make_initial_state


class StartingPoint(NamedTuple):
    """Where a run starts: after so many rounds, from the state after them."""

    rounds_done: int
    state: State


def make_new_starts(cells: Sequence[Cell]) -> list[StartingPoint]:
    """Return the states of round 0.

    UsageError where a run would wait for what it never has. What an algorithm says of its state is
    asked once, so that what it lacks for that is known before the first round.
    """
    starts = [StartingPoint(0, make_initial_state(cell)) for cell in cells]
    for cell, start in zip(cells, starts, strict=True):
        require_stop_metric(cell, start.state)
        require_calibration(cell, start.state)
        describe_internals(cell, start.state)
    return starts


def find_common_starts(
    folders: Sequence[RunFolder], cells: Sequence[Cell], *, can_go_back: bool = False
) -> list[StartingPoint]:
    """Return the newest states that runs have in common.

    can_go_back: whether a run whose metrics are damaged starts before that; else it is refused
    when its folder is cut.

    The run that is furthest behind starts from its newest checkpoint, and so do all that have one
    of the same round; likewise the others among themselves.
    """
    newest = [StartingPoint(*folder.restore(can_go_back=can_go_back)) for folder in folders]
    starts: dict[int, StartingPoint] = {}
    while len(starts) < len(newest):
        waiting = [i for i in range(len(newest)) if i not in starts]
        # At least the run that is furthest behind finds its start in each pass, so this ends.
        first = min(newest[i].rounds_done for i in waiting)
        for i in waiting:
            rounds_done, state = newest[i]
            found = state if rounds_done == first else folders[i].restore_at(first)
            if found is not None:
                starts[i] = StartingPoint(first, move_state(found, cells[i].data.device))
    return [starts[i] for i in range(len(newest))]


def move_state(state: State, device: torch.device) -> State:
    """Return the state on a device."""
    moved = {path: leaf.to(device) for path, leaf in tree.flatten(state.parts).items()}
    return State(**tree.unflatten(moved, tree.empties(state.parts)))
