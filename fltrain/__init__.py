"""Certified federated algorithms on reproducible splits. Needs torch; reads what `niidpart` writes.

The names below are loaded when first used, so that help and shell completion do without torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import algorithms, models
    from .engine.diverged import Diverged
    from .experiment import Run, resume, run
    from .interface import Algorithm
    from .one_party import party
    from .rounds import Progress
    from .settings import Settings
    from .store import RunError, RunFolder
    from .sweeps import resume_sweep, sweep

_WHERE = {
    "Algorithm": "interface",
    "Diverged": "engine.diverged",
    "Progress": "rounds",
    "Run": "experiment",
    "RunError": "store",
    "RunFolder": "store",
    "Settings": "settings",
    "party": "one_party",
    "resume": "experiment",
    "resume_sweep": "sweeps",
    "run": "experiment",
    "sweep": "sweeps",
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
