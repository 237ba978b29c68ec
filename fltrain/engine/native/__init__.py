"""Jobs on threads: the whole local training of each in one call of compiled code.

The same code counts the right answers of models.
"""

from .build import Build, find_build
from .eligibility import require_native, why_no_build, why_not_native
from .executor import Native, count_threads

__all__ = [
    "Build",
    "Native",
    "count_threads",
    "find_build",
    "require_native",
    "why_no_build",
    "why_not_native",
]
