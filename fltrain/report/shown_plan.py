"""A plan as a page shows it: what a reader needs of it, and no folder of its author's machine."""

import re

from niidpart.report.make_command import name_place

# In quotes a path may hold spaces; without, as in a comment, it has two parts at least.
_QUOTED = re.compile(r"""(?P<quote>["'])(?P<path>~?/[^"'\n]+)(?P=quote)""")
_BARE = re.compile(r"""(?<![\w:/."'~])(?P<path>~?(?:/[\w.@+-]+){2,}|~/[\w.@+-]+)""")


def shorten_paths(plan: str) -> str:
    """Return a plan with the last part of each absolute path in its place.

    A relative path stays: its author has said where it is to lie.
    """
    without_quoted = _QUOTED.sub(_shorten_quoted, plan)
    return _BARE.sub(_shorten, without_quoted)


def _shorten_quoted(found: re.Match[str]) -> str:
    quote = found["quote"]
    return f"{quote}{_shorten(found)}{quote}"


def _shorten(found: re.Match[str]) -> str:
    return name_place(found["path"])
