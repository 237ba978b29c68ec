"""`derive_on_disk`: the split that a recipe gives of labels that lie in a file."""

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..arithmetic.rng import stream
from ..data.label_stream import LabelColumn
from ..errors import UsageError
from ..features.relabelling import list_label_draws
from ..making.derivation import (
    call_strategy,
    deals_by_sizes,
    draw_all_columns,
    require_possible,
)
from ..making.owners import check_strategy_result
from ..registry import Function
from ..splits.recipe import Recipe
from ..splits.split import FederatedSplit
from ..strategies import STRATEGIES, Deal, Owners
from .owners import carry_out_on_disk
from .parts import build_parts_on_disk

_MOST_ROWS = 1 << 31  # a row is an int32; a split file of 4 GiB holds fewer anyway
_BYTES_IN_MEMORY = 32  # of a row, about, where a split is made in memory
STREAMED_ROWS = 1 << 26  # from which on commands make a split on the disk, where that can be done


def derive_on_disk(
    column: LabelColumn,
    recipe: Recipe,
    folder: Path,
    *,
    given: Mapping[str, NDArray[Any]] | None = None,
) -> FederatedSplit:
    """Return the split that `derive` gives, whose rows lie in files of a scratch folder.

    It can be used as long as the folder is there. UsageError for a strategy that needs the labels
    in memory.
    """
    n, n_classes = len(column.ids), len(column.class_sizes)
    function = STRATEGIES.find(recipe.strategy)
    require_streamable(recipe, n)
    require_possible(recipe, n)
    rng = stream(recipe.seed, "strategy", recipe.strategy, given=given)
    inputs = {"seed": recipe.seed} if _takes_seed(function) else {}
    deal = call_strategy(function, column.class_sizes, recipe, rng, inputs)
    if not isinstance(deal, Deal) or deal.order is not None:
        raise UsageError(
            f"strategy {recipe.strategy!r} takes class_sizes; a Deal without an order of its own "
            "is needed of it"
        )
    owned = carry_out_on_disk(
        deal,
        labels=column.ids,
        class_sizes=column.class_sizes,
        n_parties=recipe.n_parties,
        rng=rng,
        folder=folder,
    )
    draws = dict(deal.draws)
    if owned.moved is not None:
        draws["moved"] = owned.moved
    result = check_strategy_result(Owners(owned.owner, draws), recipe)
    parts = build_parts_on_disk(
        owned.owner,
        labels=column.ids,
        recipe=recipe,
        n_classes=n_classes,
        folder=folder,
    )
    return FederatedSplit(
        recipe=recipe,
        source=column.source,
        **parts,
        draws=result.draws,
        columns=draw_all_columns(recipe),
        root=column.root,
    )


def require_streamable(recipe: Recipe, n: int) -> None:
    """Raise UsageError where a split of n rows cannot be made on the disk."""
    memory = _BYTES_IN_MEMORY * n / 1e9
    if not deals_by_sizes(STRATEGIES.find(recipe.strategy)):
        able = [name for name in STRATEGIES.names() if deals_by_sizes(STRATEGIES.find(name))]
        raise UsageError(
            f"strategy {recipe.strategy!r} looks at each row, so it is not dealt on the disk; in "
            f"memory {n} rows take about {memory:.1f} GB. On the disk are dealt {', '.join(able)}"
        )
    if list_label_draws(recipe):
        raise UsageError(
            "labels of people are compared with the data set's in memory; leave out human-noise, "
            "or make the split in memory"
        )
    if n >= _MOST_ROWS:
        raise UsageError(
            f"there are {n} rows; a split file of at most 4 GiB (docs/format.md) holds fewer than "
            f"{_MOST_ROWS}: deal a part of them"
        )


def _takes_seed(function: Function) -> bool:
    return "seed" in signature(function).parameters
