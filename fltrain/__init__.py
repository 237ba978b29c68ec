"""Certified federated algorithms on reproducible splits. Needs torch; reads what `niidpart` writes.

The names below are loaded when first used, so that help and shell completion do without torch.
"""

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from niidpart.errors import FileFault, UsageError

    from . import algorithms, models
    from .disk.plain_folder import RunError
    from .engine.diverged import Diverged
    from .engine.execution import Execution
    from .inputs.one_party import party
    from .interface import Algorithm
    from .runs.api import run
    from .runs.events import Announcement, CellDiverged, JobDone, Progress, RoundDone
    from .runs.folder import RunFolder
    from .runs.outcome import Run
    from .runs.resuming import resume, resume_sweep
    from .runs.stopping import EarlyStop
    from .settings import Settings, SettingValues
    from .studies.api import Study, study
    from .studies.sweeping import sweep
    from .verification.verdict import RunVerdict
    from .verification.verifying import verify

_MODULES = {
    "Algorithm": "fltrain.interface",
    "Announcement": "fltrain.runs.events",
    "CellDiverged": "fltrain.runs.events",
    "Diverged": "fltrain.engine.diverged",
    "EarlyStop": "fltrain.runs.stopping",
    "Execution": "fltrain.engine.execution",
    "FileFault": "niidpart.errors",
    "JobDone": "fltrain.runs.events",
    "Progress": "fltrain.runs.events",
    "RoundDone": "fltrain.runs.events",
    "Run": "fltrain.runs.outcome",
    "RunError": "fltrain.disk.plain_folder",
    "RunFolder": "fltrain.runs.folder",
    "RunVerdict": "fltrain.verification.verdict",
    "SettingValues": "fltrain.settings",
    "Settings": "fltrain.settings",
    "Study": "fltrain.studies.api",
    "UsageError": "niidpart.errors",
    "party": "fltrain.inputs.one_party",
    "resume": "fltrain.runs.resuming",
    "resume_sweep": "fltrain.runs.resuming",
    "run": "fltrain.runs.api",
    "study": "fltrain.studies.api",
    "sweep": "fltrain.studies.sweeping",
    "verify": "fltrain.verification.verifying",
}

__version__ = version("niidpart")
__all__ = [
    "Algorithm",
    "Announcement",
    "CellDiverged",
    "Diverged",
    "EarlyStop",
    "Execution",
    "FileFault",
    "JobDone",
    "Progress",
    "RoundDone",
    "Run",
    "RunError",
    "RunFolder",
    "RunVerdict",
    "SettingValues",
    "Settings",
    "Study",
    "UsageError",
    "algorithms",
    "models",
    "party",
    "resume",
    "resume_sweep",
    "run",
    "study",
    "sweep",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in ("algorithms", "models"):
        return importlib.import_module(f"fltrain.{name}")
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'fltrain' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
