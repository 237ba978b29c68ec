"""flwr-datasets' PathologicalPartitioner and ShardPartitioner."""

from typing import Literal

import numpy as np

from ..arithmetic.deal import repeat_evenly
from ..arithmetic.numpy_draws.modern import ModernDraws
from ..arithmetic.rng import Ints
from ..errors import UsageError
from . import Owners
from ._held_classes import require_class_count
from ._replays import list_rows, sort_by_class

Assignment = Literal["random", "deterministic", "first-deterministic"]
_MOST_CLASSES = 10_000  # above, numpy chooses in another way


def deal_classes(
    draws: ModernDraws, labels: Ints, n_parties: int, k: int, assignment: str
) -> Owners:
    """Return the split of PathologicalPartitioner: each class cut evenly among its holders."""
    class_rows = list_rows(labels)
    n_classes = len(class_rows)
    require_class_count(k, n_classes)
    if n_classes > _MOST_CLASSES:
        raise UsageError(f"{n_classes} classes; this replay is of {_MOST_CLASSES} at most")
    held = np.zeros((n_parties, n_classes), np.uint8)
    for party in range(n_parties):
        held[party, _choose_classes(draws, party, n_classes, k, assignment)] = 1
    owner = np.full(len(labels), -1, np.int64)
    for label, rows in enumerate(class_rows):
        holders = np.flatnonzero(held[:, label])
        if len(holders) > len(rows):
            raise UsageError(
                f"{len(holders)} parties drew class {label}, which has {len(rows)} examples, and "
                "there the published code stops; use fewer parties, or another seed"
            )
        if len(holders):
            owner[rows] = repeat_evenly(holders, len(rows))
    return Owners(owner, {"held": held})


def _choose_classes(
    draws: ModernDraws, party: int, n_classes: int, k: int, assignment: str
) -> list[int]:
    if assignment == "random":
        return draws.choose(n_classes, k)
    if assignment == "deterministic":
        return [(party + i) % n_classes for i in range(k)]
    chosen = [party % n_classes]
    while len(chosen) < k:
        label = draws.below(n_classes)
        if label not in chosen:
            chosen.append(label)
    return chosen


def deal_shards(
    draws: ModernDraws, labels: Ints, n_parties: int, shards: int, keep_rest: bool
) -> Owners:
    """Return the split of ShardPartitioner with that many shards for each party."""
    n, n_used = len(labels), n_parties * shards
    size = n // n_used
    if not size:
        raise UsageError(
            f"{n_parties} parties x {shards} shards need {n_used} examples, there are {n}; use at "
            f"most {n // shards} parties"
        )
    n_shards = -(-n // size) if keep_rest else n // size
    chosen = draws.permutation(n_shards)[:n_used]
    order = sort_by_class(labels)
    owner = np.full(n, -1, np.int64)
    for place, shard in enumerate(chosen):
        owner[order[shard * size : (shard + 1) * size]] = place // shards
    return Owners(owner, {"shard": np.array(chosen).reshape(n_parties, shards)})
