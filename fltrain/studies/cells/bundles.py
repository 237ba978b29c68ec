"""Which cells of a study are trained side by side in one program, and how many.

A bundle is nothing on the disk: a worker that has claimed a cell claims others that can share its
program, and each stays a cell with a claim, a place and a run of its own.
"""

import json
from collections.abc import Mapping

from niidpart.splits.recipe import JSON

from ...common import SWEPT, is_number
from ...engine.footprint import BASE
from ...settings.engine import STACKING
from .cell import StudyCell

_MOST = 16  # cells of a bundle: each has a state in memory, and a kill stops them all
_SECONDS = 30.0  # of counted work, about, that a bundle has
_TURNS = 2  # bundles that each worker may hope for of what is open
_MEMORY = 1e9  # bytes that a bundle takes at most, unless one cell takes more
_LEAST = 1e-3  # seconds of a cell


def find_kind(cell: StudyCell) -> str:
    """Return what cells have in common that can share a program.

    They differ in numbers of the algorithm and in settings that change neither the rounds nor what
    is done to examples (`common.SWEPT`).
    """
    asked = cell.asked
    options: JSON = asked["options"]
    settings: JSON = asked["settings"]
    words = {key: value for key, value in options.items() if not is_number(value)}
    shared = {key: value for key, value in settings.items() if key not in SWEPT}
    told = [cell.split, asked["algorithm"], asked["words"], words, sorted(options), shared]
    return json.dumps(told, sort_keys=True)


def choose_size(cell: StudyCell, n_open: int, n_workers: int) -> int:
    """Return how many cells a worker takes at once, by facts: no clock is read.

    The more work a cell is, the fewer: what cells share is then the smaller part, and a kill costs
    more. n_open: the cells that can be claimed, of which all workers are to have some.
    """
    by_work = int(_SECONDS / max(cell.seconds, _LEAST))
    # What is beside python and torch is counted for each, though data is shared.
    by_memory = int((_MEMORY - BASE) / max(cell.memory - BASE, 1.0))
    by_share = n_open // (_TURNS * max(1, n_workers))
    return max(1, min(_MOST, by_work, by_memory, by_share))


def has_same_bytes(cell: StudyCell, device: str) -> bool:
    """Return whether a cell ends byte for byte as by itself, whatever is trained beside it.

    A stack of jobs rounds otherwise with others in it. device: cpu or cuda, that it is trained on.
    """
    return device == "cpu" and _find_engine(cell.asked["settings"]) not in STACKING


def _find_engine(settings: Mapping[str, object]) -> object:
    return settings.get("engine", "auto")
