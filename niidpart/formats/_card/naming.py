"""The names of a published split: that of its tables, and its tag."""

import re
from dataclasses import replace

from ...plot import compose_title
from ...splits.split import FederatedSplit

__all__ = ["name_config", "name_tag"]

_LONGEST = 80  # characters; the name is a folder


def name_config(split: FederatedSplit) -> str:
    """Return the recipe as a name: `digits-dir-beta-0.5-10-parties-seed-0`.

    A name that is too long ends in 8 digits of the digest instead.
    """
    title = compose_title(replace(split, root=""))
    name = re.sub(r"[^A-Za-z0-9._]+", "-", title).strip("-.")
    if len(name) <= _LONGEST:
        return name
    start = name[: _LONGEST - 9].rstrip("-.")
    return f"{start}-{split.digest[:8]}"


def name_tag(split: FederatedSplit, include_data: bool = False) -> str:
    """Return the tag of a published split: `split-` and the first 16 digits of its digest."""
    return f"split-{split.digest[:16]}{'-data' if include_data else ''}"
