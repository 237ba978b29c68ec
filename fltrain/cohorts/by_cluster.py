"""Parties of all kinds of label profile, in turn.

After Fraboni, Vidal, Kameni, Lorenzi, ICML 2021: clusters by Ward's method, and a cohort that has
each of them. Theirs are of the parties' updates and are drawn from by size; these are of the
parties' labels, which are known before the first round, and each has its turn.
"""

import functools

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ..draws import order
from . import CohortRule
from ._known import CohortDraw, KnownParties

# All pairs of parties are compared: half a gigabyte for so many.
_MOST_PARTIES = 10_000
_CPU = torch.device("cpu")


def by_cluster(parties: KnownParties, draw: CohortDraw, *, clusters: int) -> Tensor:
    """One party of each cluster of label profiles, then a second of each, and so on.

    Clusters have their turns in an order drawn for the round, and so have the parties of each.
    """
    cluster_of = find_clusters(parties, clusters)
    turn_of = _rank(order(draw.key, 1, max(cluster_of, default=0) + 1, _CPU).tolist())
    waiting: dict[int, int] = {}
    turns = []
    for party in order(draw.key, 0, len(parties), _CPU).tolist():
        cluster = cluster_of[party]
        if cluster < 0:
            continue
        lap = waiting.get(cluster, 0)
        waiting[cluster] = lap + 1
        turns.append((lap, turn_of[cluster], party))
    chosen = [party for _, _, party in sorted(turns)[: draw.size]]
    return torch.tensor(chosen, dtype=torch.int64)


@functools.lru_cache(maxsize=64)  # asked for in every round; a sweep has a few
def find_clusters(parties: KnownParties, clusters: int) -> tuple[int, ...]:
    """Return the cluster of each party, from 0; -1 for one without examples.

    Ward's method on square roots of class proportions, whose Euclidean distance is Hellinger's.
    It draws nothing. Parties of equal profiles are in one cluster, so there may be fewer.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    held = torch.nonzero(parties.n > 0).flatten()
    cluster_of = [-1] * len(parties)
    labels = [0] * len(held)
    if len(held) > 1:
        counts = parties.counts[held].double()
        profiles = (counts / counts.sum(1, keepdim=True)).sqrt()
        tree = linkage(profiles.numpy(), method="ward")
        heights = [0.0, *sorted(tree[:, 2].tolist())]
        # as many mergers as leave so many clusters, and those of the same height
        highest = heights[max(len(held) - clusters, 0)]
        labels = fcluster(tree, t=highest, criterion="distance").tolist()
    # numbered by their first party, not by how scipy walks its tree
    numbers: dict[int, int] = {}
    for party, label in zip(held.tolist(), labels, strict=True):
        cluster_of[party] = numbers.setdefault(label, len(numbers))
    return tuple(cluster_of)


def _rank(in_order: list[int]) -> dict[int, int]:
    """Return the place of each number in a list."""
    return {number: place for place, number in enumerate(in_order)}


def require_few(parties: KnownParties, size: int, *, clusters: int) -> None:
    """Raise UsageError for more parties than can be compared pair by pair."""
    n_held = int((parties.n > 0).sum())
    if n_held > _MOST_PARTIES:
        raise UsageError(
            f"cohort by-cluster compares all pairs of parties, and {n_held} have examples; it "
            f"takes at most {_MOST_PARTIES}: use another --cohort"
        )


ENTRY = CohortRule(choose=by_cluster, require=require_few)
