"""What is said about an exception that niidpart or fltrain did not raise on purpose."""

import sys
import traceback
from pathlib import Path

_PACKAGES = ("niidpart", "fltrain", "niidpart_cli")


def find_own_place(error: BaseException) -> str:
    """Return `FILE, line N` where an error arose in a file of the user's own, else "".

    Libraries only do what they are told, so the innermost frame that is of no library decides.
    """
    ours = [Path(sys.modules[name].__file__ or "").parent for name in _PACKAGES if _is_loaded(name)]
    libraries = [Path(sys.prefix), Path(sys.base_prefix)]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if any(path.is_relative_to(folder) for folder in ours):
            return ""
        is_library = any(path.is_relative_to(folder) for folder in libraries)
        if not is_library and not frame.filename.startswith("<"):
            return f"{frame.filename}, line {frame.lineno}"
    return ""


def _is_loaded(name: str) -> bool:
    return name in sys.modules


def explain_crash(error: BaseException, program: str) -> str:
    """Return the line below a traceback: whose fault it is, and what to do."""
    place = find_own_place(error)
    if place:
        return f"raised in {place}: a file of your own, which {program} only called"
    return (
        f"this is a bug of {program}: please report it, with the traceback and the output of "
        f"`{program} --version`, at the project's issue tracker"
    )
