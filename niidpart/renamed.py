"""Old names of the public API: they work for this version and say the new one."""

import warnings


def warn_renamed(old: str, new: str) -> None:
    """Warn whoever called the function that calls this one."""
    message = f"{old} is now {new}; the old spelling goes in the next version"
    warnings.warn(message, FutureWarning, stacklevel=3)
