"""Certified federated algorithms on reproducible splits. Needs torch; reads what `niidpart` writes.

The names below are loaded when first used, so that help and shell completion do without torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import algorithms, models
    from .engine.diverged import Diverged
    from .inputs.one_party import party
    from .interface import Algorithm
    from .runs.folder import RunError, RunFolder
    from .runs.rounds import Progress
    from .runs.running import Run, resume, run
    from .runs.sweeping import resume_sweep, sweep
    from .settings import Settings

_WHERE = {
    "Algorithm": "interface",
    "Diverged": "engine.diverged",
    "Progress": "runs.rounds",
    "Run": "runs.running",
    "RunError": "runs.folder",
    "RunFolder": "runs.folder",
    "Settings": "settings",
    "party": "inputs.one_party",
    "resume": "runs.running",
    "resume_sweep": "runs.sweeping",
    "run": "runs.running",
    "sweep": "runs.sweeping",
}
__all__ = [
    "Algorithm",
    "Diverged",
    "Progress",
    "Run",
    "RunError",
    "RunFolder",
    "Settings",
    "algorithms",
    "models",
    "party",
    "resume",
    "resume_sweep",
    "run",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in ("algorithms", "models"):
        return importlib.import_module(f"fltrain.{name}")
    if name in _WHERE:
        return getattr(importlib.import_module(f"fltrain.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'fltrain' has no attribute {name!r}")
