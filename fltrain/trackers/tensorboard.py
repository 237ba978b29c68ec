"""TensorBoard: a folder of event files."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from ._interface import Log, PlacedLog, TrackedRun, select_lists, select_numbers

__all__ = ["tensorboard"]


@contextmanager
def tensorboard(run: TrackedRun) -> Iterator[Log]:
    """Event files for TensorBoard, in tensorboard/RUN or =FOLDER/RUN. Needs tensorboard.

    What parties have each is a histogram. Rounds that were cut off before a run was resumed are
    hidden.
    """
    from torch.utils.tensorboard import SummaryWriter

    all_runs = Path(run.place or "tensorboard")
    folder = all_runs / run.group / f"{run.name}-{run.id[:8]}"
    first = run.rounds_done + 1

    def log(round: int, metrics: Mapping[str, Any]) -> None:
        for name, value in select_numbers(metrics).items():
            writer.add_scalar(name, value, round)
        for name, values in select_lists(metrics).items():
            writer.add_histogram(name, np.asarray(values), round)
        writer.flush()

    with SummaryWriter(str(folder), purge_step=first) as writer:
        if first == 1:
            writer.add_text("config", _format_config(run.config))
        command = f"tensorboard --logdir {quote(str(all_runs))}"
        yield PlacedLog(log, place=str(folder), command=command)


def _format_config(config: Mapping[str, Any]) -> str:
    """Return the configuration as a table of Markdown, which TensorBoard shows."""
    rows = [f"| {name} | {value} |" for name, value in config.items()]
    return "\n".join(["| | |", "| --- | --- |", *rows])
