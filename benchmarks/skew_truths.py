"""Splits whose proportions are known: for each strategy one split of a seed, and the table of shares that it was dealt by.

A truth is a table [P, K] of numbers that need not be whole: what each party would hold if examples could be cut. It is computed from
the draws that the split stores, by plain formulas, not by the code that dealt.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

import niidpart
from niidpart.heterogeneity import Reading
from niidpart.splits.dealing import find_reading, list_moves

Floats = NDArray[np.float64]
K = 10  # classes, equally large


class Case(NamedTuple):
    """A split to make: `n` rows a party. beta: None for a strategy that has none."""

    strategy: str
    n_parties: int
    n: int
    beta: float | None


class Known(NamedTuple):
    """What was dealt, and the truth.

    counts: [P, K]. reading, moves: as `niidpart.heterogeneity.measure` takes them. truth: shares [P, K]; None where every party has the mix of
    the whole. beta: that of the Dirichlet, where the shares are drawn from one.
    """

    counts: NDArray[Any]
    reading: Reading | None
    moves: NDArray[np.int64] | None
    truth: Floats | None
    beta: float | None


def _know(split: niidpart.FederatedSplit, truth: Floats | None, beta: float | None = None) -> Known:
    return Known(split.train.counts, find_reading(split.recipe), list_moves(split), truth, beta)


def make_known(case: Case, seed: int) -> Known:
    return MAKERS[case.strategy](case, seed)


def _make(case: Case, seed: int, **options: Any) -> niidpart.FederatedSplit:
    labels = np.arange(case.n_parties * case.n) % K
    if case.beta is not None:
        options["beta"] = case.beta
    return niidpart.make(labels, case.strategy, n_parties=case.n_parties, seed=seed, **options)


def _sample(case: Case, seed: int) -> Known:
    """Parties that hold a multinomial sample of proportions from Dir(beta): what no strategy of ours does, and what is assumed on request."""
    rng = np.random.default_rng([seed, case.n_parties, case.n])
    p = rng.dirichlet(np.full(K, case.beta), case.n_parties)
    return Known(rng.multinomial(case.n, p), "sample", None, p * case.n, case.beta)


def _dir(case: Case, seed: int) -> Known:
    split = _make(case, seed)
    class_size = split.source.n / K
    return _know(split, split.draws["proportions"].T * class_size, case.beta)


def _dir_balanced(case: Case, seed: int) -> Known:
    """The draws, with 0 for parties that were full when their class was dealt: who was, counts before the filling up say."""
    split = _make(case, seed)
    dealt = _make(
        case, seed, min_size=0
    ).train.counts  # the same draws: nothing else has the option in it
    held_before = np.cumsum(dealt, axis=1) - dealt
    p = np.where(held_before * case.n_parties < split.source.n, split.draws["proportions"].T, 0.0)
    for k in np.flatnonzero(p.max(axis=0) == 0):
        p[:, k] = dealt[:, k] > 0  # one party that was not full got all
    return _know(split, p / p.sum(axis=0) * (split.source.n / K))


def _party_dir(case: Case, seed: int) -> Known:
    """The draws, made to agree with how many there are of each class, as the strategy says that it does, with shares that need not be whole."""
    return _share_out(_make(case, seed))


def _share_out(split: niidpart.FederatedSplit) -> Known:
    wanted, lacking = split.draws["proportions"], split.draws["sizes"].astype(float)
    left = np.full(K, split.source.n / K)
    shares = np.zeros_like(wanted)
    for _ in range(K + 1):
        p = np.where(left > 1e-9, wanted, 0.0)
        p[p.max(axis=1) == 0] = left
        asked = p / p.sum(axis=1, keepdims=True) * lacking[:, None]
        asked *= np.minimum(1, left / np.maximum(asked.sum(axis=0), 1e-300))
        shares += asked
        # What rounding leaves below zero would be asked for as a share below zero.
        left = np.maximum(left - asked.sum(axis=0), 0)
        lacking = np.maximum(lacking - asked.sum(axis=1), 0)
        if lacking.max() < 1e-9:
            break
    return _know(split, shares)


def _niidbench(case: Case, seed: int) -> Known:
    """The published loop once more, for the proportions that it does not keep."""
    split = _make(case, seed, rule="dir")
    n, random = split.source.n, np.random.RandomState(seed)
    for _ in range(int(split.draws["tries"][0])):  # the last one counts
        sizes, shares = np.zeros(case.n_parties), []
        for _ in range(K):
            random.shuffle(np.arange(n // K))
            p = random.dirichlet(np.repeat(case.beta, case.n_parties)) * (
                sizes < n / case.n_parties
            )
            shares.append(p / p.sum() * (n // K))
            cuts = (np.cumsum(p / p.sum()) * (n // K)).astype(int)[:-1]
            sizes += np.diff(np.concatenate([[0], cuts, [n // K]]))
    return _know(split, np.array(shares).T)


def _labels(case: Case, seed: int) -> Known:
    split = _make(case, seed, k=3)
    held = split.draws["held"].astype(float)
    return _know(split, held / np.maximum(held.sum(axis=0), 1) * (split.source.n / K))


def _extended_dir(case: Case, seed: int) -> Known:
    """The draws of those who hold a class, rescaled; the one holder with rows where nothing is left of them."""
    split = _make(case, seed, k=3)
    dealt = _make(case, seed, k=3, min_size=0).train.counts  # the same draws
    p = split.draws["proportions"].T * split.draws["held"]
    for k in np.flatnonzero(p.max(axis=0) == 0):
        p[:, k] = dealt[:, k] > 0
    return _know(split, p / p.sum(axis=0) * (split.source.n / K))


def _shards(case: Case, seed: int) -> Known:
    """Each shard is a stretch of the row of all examples, sorted by class."""
    split = _make(case, seed, shards=3)
    ends = np.linspace(0, K, 3 * case.n_parties + 1)  # of the shards, in classes
    classes = np.arange(K)
    overlap = np.minimum(ends[1:, None], classes + 1) - np.maximum(ends[:-1, None], classes)
    of_shard = np.maximum(overlap, 0) * (split.source.n / K)
    return _know(split, of_shard[split.draws["shard"]].sum(axis=1))


def _make_devices(case: Case, seed: int) -> niidpart.FederatedSplit:
    """FedCD's devices draw from pools that they share, which have to be large enough for one."""
    labels = np.arange(max(case.n_parties, 30) * case.n) % K
    return niidpart.make(
        labels,
        case.strategy,
        n_parties=case.n_parties,
        seed=seed,
        n_train=case.n,
        n_val=1,
        n_test=1,
    )


def _hierarchical(case: Case, seed: int) -> Known:
    split = _make_devices(case, seed)
    own, bias = split.columns["archetype"], split.draws["bias"]
    half = np.arange(K) // (K // 2)
    p = np.where(half[own][:, None] == half, (1 - bias[:, None]) / (K // 2 - 1), 0.0)
    p[np.arange(case.n_parties), own] = bias
    return _know(split, p * case.n)


def _hypergeometric(case: Case, seed: int) -> Known:
    split = _make_devices(case, seed)
    marked = (5 + 20 * split.columns["archetype"][:, None]) * K // 10
    p = hypergeom(11 * K, marked, K).pmf(np.arange(K))
    return _know(split, p / p.sum(axis=1, keepdims=True) * case.n)


def _dir_multinomial(case: Case, seed: int) -> Known:
    split = _make(case, seed)
    return _know(split, split.draws["proportions"].T * (split.source.n / K), case.beta)


def _label_quantity(case: Case, seed: int) -> Known:
    """As party-dir: the sharing out of what parties want, with shares that need not be whole."""
    return _share_out(_make(case, seed, size_beta=3.0))


def _iid(case: Case, seed: int) -> Known:
    return _know(_make(case, seed), None)


MAKERS: dict[str, Callable[[Case, int], Known]] = {
    "dir": _dir,
    "a sample": _sample,
    "dir-balanced": _dir_balanced,
    "party-dir": _party_dir,
    "niidbench": _niidbench,
    "quantity": _iid,
    "homo": _iid,
    "labels": _labels,
    "extended-dir": _extended_dir,
    "lognormal": _iid,
    "power-law": _iid,
    "exponential": _iid,
    "multinomial": _iid,
    "dir-multinomial": _dir_multinomial,
    "label-quantity": _label_quantity,
    "shards": _shards,
    "hierarchical": _hierarchical,
    "hypergeometric": _hypergeometric,
}
HAVE_BETA = (
    *("dir", "a sample", "dir-balanced", "party-dir", "niidbench", "quantity"),
    "extended-dir",
    "dir-multinomial",
    "label-quantity",
)
