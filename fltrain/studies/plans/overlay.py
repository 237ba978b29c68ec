"""Words of a plan laid over those of another, as a group's lie over the plan's. Needs no torch."""

from collections.abc import Mapping
from typing import Any


def lay_over(plan: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan with other words in the place of its own.

    `fixed` is laid over word by word, also where a group has its own, and `groups` group by group,
    by their names. Anything else takes the place of the whole: a list of splits that of all splits.
    """
    laid = dict(plan)
    for word, value in words.items():
        if word == "fixed":
            laid["fixed"] = {**plan.get("fixed", {}), **value}
        elif word != "groups":
            laid[word] = value
    if "groups" in plan:
        changed = {group["name"]: group for group in words.get("groups", [])}
        fixed = words.get("fixed", {})
        laid["groups"] = [
            lay_over(_fix(group, fixed), changed.get(group["name"], {})) for group in plan["groups"]
        ]
    return laid


def _fix(group: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group with other values of what it fixes itself."""
    own = group.get("fixed", {})
    changed = {word: fixed.get(word, value) for word, value in own.items()}
    return {**group, "fixed": changed} if own else dict(group)
