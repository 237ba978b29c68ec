"""Old names of the public API: they work for this version and say the new one."""

import sys
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

_SAME: Mapping[str, str] = MappingProxyType({})


def warn_renamed(old: str, new: str) -> None:
    """Warn whoever called the function that calls this one."""
    message = f"{old} is now {new}; the old spelling goes in the next version"
    warnings.warn(message, FutureWarning, stacklevel=3)


def forward_names(
    old: str, new: ModuleType, renames: Mapping[str, str] = _SAME
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that has moved.

    old: the dotted name that it had. new: the module that has its functions now. renames: those
    that have another name there.
    """

    def get(name: str) -> Any:
        current = renames.get(name, name)
        is_gone = name not in renames and name in renames.values()  # a new name in the old place
        if name.startswith("_") or is_gone or not hasattr(new, current):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        warn_renamed(f"{old}.{name}", f"{new.__name__}.{current}")
        return getattr(new, current)

    return get


def forward_old_names(module: str, renames: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module some of whose names have changed.

    module: its dotted name. renames: the new name of each old one.
    """

    def get(name: str) -> Any:
        if name not in renames:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        current = renames[name]
        warn_renamed(f"{module}.{name}", f"{module}.{current}")
        return getattr(sys.modules[module], current)

    return get
