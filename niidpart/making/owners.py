"""From what a strategy returned to the parts of a split. A strategy may be a user's own, so everything is checked on the way."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, stream
from ..errors import UsageError
from ..splits.part import PARTS, Part, make_empty_part, make_part, make_part_from_pairs
from ..splits.recipe import NAME, Recipe
from ..strategies import Owners, Rows
from .holdouts import hold_out


def check_strategy_result(result: Any, recipe: Recipe) -> Owners | Rows:
    """What the recipe's strategy returned, its draws and columns checked; a plain (owner, draws) is an `Owners`."""
    if type(result) is tuple and len(result) == 2:
        result = Owners(*result)
    if not isinstance(result, Owners | Rows):
        who = f"strategy {recipe.strategy!r}"
        raise UsageError(
            f"{who} returned {type(result).__name__}; niidpart.strategies.Owners(owner [N], draws) or Rows is needed"
        )
    _check_arrays(f"strategy {recipe.strategy!r}", result, recipe.n_parties)
    return result


def build_parts(
    result: Owners | Rows, recipe: Recipe, labels: Ints, n_classes: int
) -> dict[str, Part]:
    """{"train", "val", "test": Part} of what the recipe's strategy returned; ValueError where that is not as it must be."""
    who = f"strategy {recipe.strategy!r}"
    if isinstance(result, Rows):
        return _of_rows(who, result, recipe, labels, n_classes)
    owner, n = result.owner, len(labels)
    if (
        not isinstance(owner, np.ndarray)
        or owner.shape != (n,)
        or owner.dtype.kind != "i"
        or owner.min() < -1
        or owner.max() >= recipe.n_parties
    ):
        got = (
            f"{owner.dtype}{list(owner.shape)}"
            + (f" in {owner.min()}..{owner.max()}" if owner.size else "")
            if isinstance(owner, np.ndarray)
            else owner
        )
        raise UsageError(
            f"{who} returned owners {got}; integers -1..{recipe.n_parties - 1} [{n}] are needed"
        )
    if owner.max() < 0:
        raise UsageError(f"{who} gave no example to anybody")
    if not recipe.val and not recipe.test:
        empty = make_empty_part(recipe.n_parties, n_classes)
        return {
            "train": make_part(owner, labels, recipe.n_parties, n_classes),
            "val": empty,
            "test": empty,
        }
    return hold_out(
        owner,
        labels,
        recipe.n_parties,
        n_classes,
        recipe.val,
        recipe.test,
        stream(recipe.seed, "holdout"),
    )


def _of_rows(
    who: str, result: Rows, recipe: Recipe, labels: Ints, n_classes: int
) -> dict[str, Part]:
    if recipe.val or recipe.test:
        raise UsageError(
            f"{who} gives each party its own validation and test part; leave out val and test"
        )
    if "train" not in result.parts or not set(PARTS).issuperset(result.parts):
        raise UsageError(
            f"{who} returned the parts {sorted(result.parts)}; train is needed, val and test are possible"
        )
    parts, seen = {}, np.zeros(len(labels), bool)
    for name in PARTS:
        party, row = result.parts.get(name, (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        if len(party) != len(row) or (
            len(row)
            and not (
                row.min() >= 0
                and row.max() < len(labels)
                and party.min() >= 0
                and party.max() < recipe.n_parties
            )
        ):
            raise UsageError(
                f"{who}: {name} must be pairs of a party 0..{recipe.n_parties - 1} and a row 0..{len(labels) - 1}"
            )
        if seen[row].any():
            raise UsageError(
                f"{who} has {int(seen[row].sum())} rows in {name} that are in another part too"
            )
        seen[row] = True
        parts[name] = make_part_from_pairs(party, row, labels, recipe.n_parties, n_classes)
        if (np.diff(parts[name].indices)[_within(parts[name])] == 0).any():
            raise UsageError(f"{who} gives a party the same row twice in {name}")
    if not parts["train"].n:
        raise UsageError(f"{who} gave no example to anybody")
    return parts


def _within(p: Part) -> NDArray[np.bool_]:
    """[n-1]: whether index i and i+1 belong to one party."""
    inside = np.ones(max(p.n - 1, 0), bool)
    ends = p.indptr[1:-1] - 1
    inside[ends[(ends >= 0) & (ends < p.n - 1)]] = False
    return inside


def _check_arrays(who: str, result: Owners | Rows, n_parties: int) -> None:
    for kind, arrays in (("draw", result.draws), ("column", result.columns)):
        if not isinstance(arrays, Mapping):
            raise UsageError(
                f"{who} returned {kind}s as {type(arrays).__name__}; a dict of arrays by name is needed"
            )
        for name, value in arrays.items():
            shape = "[n] or [n, m]" if kind == "draw" else f"[{n_parties}]"
            fits = isinstance(value, np.ndarray) and (
                value.ndim in (1, 2) if kind == "draw" else value.shape == (n_parties,)
            )
            if (
                not NAME.match(name)
                or not fits
                or value.dtype.kind not in ("iuf" if kind == "draw" else "iufS")
            ):
                raise UsageError(
                    f"{who} returned the {kind} {name!r}; a name of letters, digits and '_', with an array {shape} of numbers, is needed"
                )
