"""The command that makes a split, from what the split was asked to be."""

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..splits.recipe import IMPORTED, Recipe, Source

_UNSET: tuple[object, ...] = (None, "", (), [])
_NO_COMMAND = "array", "table"  # data sets that python handed over


def write_make_command(source: Source, root: str, recipe: Recipe, out: str = "") -> str:
    """Return `niidpart make ...` with all options written out.

    root: where the data set lies, of which the last part is told; "" for one that needs no place.
    out: the file, "" for the usual one.
    """
    words = ["niidpart", "make", *write_flag("dataset", source.name)]
    if root:
        words += write_flag("data_root", name_place(root))
    words += _write_flags(source.params)
    words += write_flag("strategy", recipe.strategy)
    words += _write_flags(recipe.params)
    for step in recipe.transforms:
        said = {key: value for key, value in step.params.items() if value not in _UNSET}
        pairs = [f"{key}={_write_value(value)}" for key, value in said.items()]
        words += write_flag("transform", f"{step.name}:{','.join(pairs)}")
    words += write_flag("parties", recipe.n_parties) + write_flag("seed", recipe.seed)
    for part, fraction in (("val", recipe.val), ("test", recipe.test)):
        words += write_flag(part, fraction) if fraction else []
    words += ["-o", out] if out else []
    return join_command(words)


def explain_no_command(source: Source, recipe: Recipe) -> str:
    """Return why no command makes a split again; "" where one does."""
    if recipe.strategy == IMPORTED:
        return "another program chose who holds what, so the split cannot be made again, only kept"
    if source.name in _NO_COMMAND:
        return (
            "the labels were handed over in Python, so the split is made again there: "
            "niidpart.derive(split.recipe, data)"
        )
    named = [recipe.strategy, source.name, *(step.name for step in recipe.transforms)]
    own = [name for name in named if ":" in name]
    if own:
        return f"{own[0]} is code of its maker's own, which making the split again takes"
    return ""


def join_command(words: Iterable[str]) -> str:
    """Return words as a command for a shell, without signs that steer a terminal.

    Whoever pastes it pastes what a file says: there an escape could end the quoted word.
    """
    plain = ["".join(sign if sign.isprintable() else "?" for sign in word) for word in words]
    return shlex.join(plain)


def write_flag(name: str, value: Any) -> list[str]:
    """Return an option as words of a command; [] for one that is not set."""
    flag = f"--{name.replace('_', '-')}"
    if value in _UNSET:
        return []
    if isinstance(value, bool):
        return [flag] if value else [f"--no-{flag[2:]}"]
    return [flag, _write_value(value)]


def name_place(place: str) -> str:
    """Return the last part of a path: what stands before it may name a person, and is no help."""
    return Path(place).name or place


def _write_flags(params: Mapping[str, Any]) -> list[str]:
    return [word for name, value in params.items() for word in write_flag(name, value)]


def _write_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
