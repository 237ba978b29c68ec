"""What is done with the last model of a run, and measured of it: fine-tuning and calibration."""

from typing import Any

from ..engine.execution import Execution
from ..engine.jobs import Cell
from ..engine.scoring import Score
from ..interface import State
from .calibrating import calibrate
from .finetuning import finetune


def conclude(
    cell: Cell, state: State, round: int, execution: Execution, score: Score
) -> dict[str, Any]:
    """Return the metrics that the last round alone has; {} where none are asked for."""
    metrics: dict[str, Any] = {}
    if cell.settings.finetune:
        metrics |= finetune(cell, state, round, execution, score)
    if cell.settings.calibrate:
        metrics |= calibrate(cell, state, round, score)
    return metrics
