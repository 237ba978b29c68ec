"""What the small scale of a paper's study shrinks. Needs no torch."""

from collections.abc import Mapping, Sequence
from typing import Any

from .paper_studies import PaperStudy, Scale

_MANY = 6  # values that are told one by one


def describe_scale(study: PaperStudy, scale: Scale) -> list[str]:
    """Return lines that say what a scale has in the place of the paper's own; [] for the full."""
    if scale == "full":
        return []
    lines = _describe_words(study.full, study.small)
    groups = {group["name"]: group for group in study.full.get("groups", [])}
    for group in study.small.get("groups", []):
        told = _describe_words(groups[group["name"]], group)
        lines += [f"{group['name']}: {line}" for line in told]
    return [f"{scale}: {line}" for line in lines]


def _describe_words(full: Mapping[str, Any], small: Mapping[str, Any]) -> list[str]:
    lines = []
    for word, value in small.items():
        if word == "fixed":
            own = full.get("fixed", {})
            for name, changed in value.items():
                lines.append(f"{name} {changed!r} for {_describe(own.get(name))}")
        elif word == "axes":
            own = full.get("axes", {})
            for name, values in value.items():
                lines.append(f"{name} {_describe(values)} for {_describe(own.get(name))}")
        elif word in ("splits", "algorithms"):
            lines.append(f"{word} {_name_all(value)} for {_name_all(full.get(word, []))}")
        elif word == "trials":
            lines.append(f"trials {value} for {full.get('trials', 1)}")
        elif word not in ("groups", "name"):
            lines.append(f"other {word}")
    return lines


def _describe(value: Any) -> str:
    if value is None:
        return "the preset's"
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value)
    return repr(value)


def _name_all(tables: Sequence[Any]) -> str:
    """Return what splits or algorithms are called; of many how many, and the data sets."""
    names: list[str] = []
    for table in tables:
        names += _name(table)
    names = list(dict.fromkeys(names))
    if len(names) <= _MANY:
        return ", ".join(names) or "the plan's"
    return f"{len(names)} ({', '.join(names[:2])}, ...)"


def _name(table: Any) -> list[str]:
    if isinstance(table, str):
        return [table]
    named = table.get("name") or table.get("recipe") or table.get("dataset") or table.get("file")
    names = list(named) if isinstance(named, list) else [str(named)]
    dataset = table.get("dataset")
    if dataset and dataset not in names:
        return [f"{name} of {dataset}" for name in names]
    return names
