"""One tracker a file; the folder is the registry: a function (run: TrackedRun) -> context of a log.

`fltrain run --track wandb` hands it what `metrics.jsonl` gets, after each round. The run folder is
the same with and without a tracker, and a tracker that fails ends no run.
"""

from niidpart.registry import Registry

from ._interface import (
    Log,
    PlacedLog,
    TrackedPlace,
    TrackedRun,
    Tracker,
    select_lists,
    select_numbers,
)

__all__ = [
    "TRACKERS",
    "Log",
    "PlacedLog",
    "TrackedPlace",
    "TrackedRun",
    "Tracker",
    "select_lists",
    "select_numbers",
]

TRACKERS = Registry("fltrain.trackers", "tracker")
