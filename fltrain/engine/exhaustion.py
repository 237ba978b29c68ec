"""What is said where a device has no memory left."""

import contextlib
from collections.abc import Iterator, Sequence

import torch

from niidpart.errors import UsageError

from ..settings.engine import STACKING
from .execution import Execution
from .jobs import Cell


@contextlib.contextmanager
def explain_exhaustion(cells: Sequence[Cell], execution: Execution) -> Iterator[None]:
    """Make a UsageError that says which options help of torch's that the memory is used up."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        lower = f"lower --batch-size (now {cells[0].settings.batch_size})"
        if execution.engine in STACKING:
            memory = execution.memory
            now = "half of the device's" if memory is None else f"{memory:g} GiB"
            help_ = f"give jobs less with --memory (now {now}), {lower}, or use --engine looped"
        else:
            help_ = f"{lower}, or take a smaller --model"
        raise UsageError(f"the device is out of memory: {help_}") from error
