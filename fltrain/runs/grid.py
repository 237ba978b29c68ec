"""What a sweep goes over: lists of numbers, their product, and the names of its cells. Needs no torch."""

import itertools
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import coerce, did_you_mean

from ..settings import Settings

SWEPT = (
    "lr",
    "momentum",
    "weight_decay",
    "seed",
    "init_seed",
)  # settings that change neither the number of rounds nor what is done to examples
WHAT = f"numbers of the algorithm and {', '.join('--' + name.replace('_', '-') for name in SWEPT)} can be swept"
Cell = dict[str, Any]


def is_number(annotation: Any) -> bool:
    """int, float, or one of them | None."""
    return annotation in (int, float) or any(
        is_number(a)
        for a in typing.get_args(annotation)
        if type(None) in typing.get_args(annotation)
    )


def annotations(options: Mapping[str, Any]) -> dict[str, Any]:
    """The types of all that a grid may name, in the order of a cell's name: an algorithm's options (`Registry.options`), then the settings."""
    return {name: option.annotation for name, option in options.items()} | {
        f.name: f.type for f in fields(Settings)
    }


def axes(
    grid: Mapping[str, Sequence[Any]], trials: int, seed: int, kinds: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """The lists that a sweep goes over, checked, in the order of `kinds`; the seeds among them, seed..seed+trials-1 for several trials.

    kinds: the types, of `annotations`. seed: the first, where the grid has none. ValueError for a name that there is not, a word, a tuple or
    another setting with several values, the same value twice, and seeds said twice.
    """
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise UsageError(f"trials is {trials!r}; it must be a whole number, at least 1")
    found = {name: _values(name, values, kinds) for name, values in grid.items()}
    seeds = found.get("seed", [seed])
    if trials > 1 and len(seeds) > 1:
        raise UsageError(
            f"{trials} trials and {len(seeds)} seeds were asked for; give one seed, from which the trials count, or the seeds alone"
        )
    found["seed"] = seeds if trials == 1 else [seeds[0] + i for i in range(trials)]
    return {name: found[name] for name in kinds if name in found}


def _values(name: str, values: Sequence[Any], kinds: Mapping[str, Any]) -> list[Any]:
    if name not in kinds:
        raise UsageError(
            f"there is no option or setting {name!r}; {did_you_mean(name, list(kinds))}"
        )
    if not isinstance(values, list | tuple | range) or not len(values):
        raise UsageError(
            f"the grid has {values!r} for {name}; it must be a list of at least one value"
        )
    if len(values) > 1 and (
        not is_number(kinds[name]) or (name in _SETTINGS and name not in SWEPT)
    ):
        raise UsageError(
            f"{name.replace('_', '-')} cannot be swept, and {len(values)} values were given; {WHAT}. Run it once for each"
        )
    checked = [coerce(name.replace("_", "-"), value, kinds[name]) for value in values]
    if twice := [value for i, value in enumerate(checked) if value in checked[:i]]:
        raise UsageError(f"{name.replace('_', '-')} has the value {twice[0]} twice; give it once")
    return checked


_SETTINGS = {f.name for f in fields(Settings)}


def product(lists: Mapping[str, Sequence[Any]]) -> list[Cell]:
    """Every choice of a value from each list, the last list fastest."""
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def differing(cells: Sequence[Cell]) -> list[Cell]:
    """The cells without what they have in common; of a single cell its seed is kept."""
    if len(cells) == 1:
        return [{"seed": cells[0]["seed"]}]
    return [
        {k: v for k, v in cell.items() if any(other[k] != v for other in cells)} for cell in cells
    ]


def folder_name(cell: Cell) -> str:
    """`mu=0.001,seed=0`: a name that every file system takes."""
    return ",".join(f"{name}={_text(value)}" for name, value in cell.items())


def _text(value: Any) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def split_names(given: Iterable[str]) -> list[str]:
    """A name for each split, of its file's stem; -2, -3, ... where two have one stem. Letters, digits and ._+- alone."""
    names: list[str] = []
    for where in given:
        last = where.rpartition("@")[0] or where if where.startswith("hub:") else where
        stem = (
            re.sub(r"[^A-Za-z0-9._+-]+", "-", Path(last).name.removesuffix(".h5"))[:60].strip(".-")
            or "split"
        )
        n = 1
        while (name := stem if n == 1 else f"{stem}-{n}") in names:
            n += 1
        names.append(name)
    return names


def settings_apart(cells: Sequence[Cell]) -> dict[str, list[int]]:
    """The numbers of the cells by all that differs but the seeds: those of one line are trials of one setting."""
    groups: dict[str, list[int]] = {}
    for i, cell in enumerate(cells):
        groups.setdefault(
            folder_name({k: v for k, v in cell.items() if k not in ("seed", "init_seed")}), []
        ).append(i)
    return groups
