"""What a split is, as numbers that a table may have in the place of a metric. Needs no torch.

n_train, n_test, n_classes   of its data set
map_beta                     the beta that explains all parties together best
map_beta_party               the median of what each party makes of its own counts, as FedMOC's do
hellinger, emd, ...          how skewed it is, not corrected for chance: a file of
                             niidpart/heterogeneity/measures each
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import niidpart
from niidpart.heterogeneity import MEASURES, evaluate_measure, map_beta, map_beta_overall
from niidpart.heterogeneity.skew import choose_likelihood
from niidpart.splits.dealing import find_reading
from niidpart.splits.view import SplitView

Fact = Callable[[SplitView], float]


def _count_train(split: SplitView) -> float:
    return split.source.n


def _count_test(split: SplitView) -> float:
    return split.source.n_test


def _count_classes(split: SplitView) -> float:
    return len(split.source.class_names)


def _estimate_overall(split: SplitView) -> float:
    likelihood = choose_likelihood(find_reading(split.recipe))
    return map_beta_overall(split.train.counts, likelihood=likelihood)


def _estimate_party(split: SplitView) -> float:
    counts = split.train.counts
    held = counts[counts.any(axis=1)]
    return float(np.median(map_beta(held if len(held) else counts)))


_FACTS: Mapping[str, Fact] = {
    "n_train": _count_train,
    "n_test": _count_test,
    "n_classes": _count_classes,
    "map_beta": _estimate_overall,
    "map_beta_party": _estimate_party,
}


def list_split_facts() -> list[str]:
    """Return the names of all facts."""
    return [*_FACTS, *MEASURES.names()]


def find_split_fact(file: Path, fact: str) -> float:
    """Return a fact of the split of a file."""
    with niidpart.open(file) as split:
        if fact in _FACTS:
            return _FACTS[fact](split)
        return evaluate_measure(fact, split.train.counts)
