"""Distances and kernels between the examples of parties, and what they say of the parties."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints

DistanceMeasure: TypeAlias = Literal["energy", "mmd"]
_BLOCK = 512  # rows of the distance matrix made at a time


def project_to_components(x: Floats, n: int) -> Floats:
    """Return [M, n], the first principal components of x [M, D], or all there are."""
    M, D = x.shape
    centred = x - x.mean(axis=0)
    # eigh's values rise: the last are the largest, and are turned to the front.
    if D <= M:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        directions = vectors[:, ::-1][:, :n]  # [D, n]
        return np.asarray(centred @ directions)
    # Fewer examples than features: the smaller matrix of inner products has the same components,
    # its eigenvectors times the roots of its eigenvalues.
    values, vectors = np.linalg.eigh(centred @ centred.T)
    largest = values[::-1][:n]
    scale = np.sqrt(np.maximum(largest, 0.0))  # rounding can leave -1e-17
    coordinates = vectors[:, ::-1][:, :n]  # [M, n]
    return np.asarray(coordinates * scale)


def compute_kernel(x: Floats, measure: DistanceMeasure) -> tuple[Floats, float | None]:
    """Return the matrix [M, M] between the examples x [M, D], and its bandwidth.

    "energy": Euclidean distances, without a bandwidth. "mmd": the kernel exp(-|x-y|^2 / (2 s^2)),
    with the bandwidth s, the median distance.
    """
    from scipy.spatial.distance import cdist

    M = len(x)
    matrix = np.empty((M, M))
    for start in range(0, M, _BLOCK):
        rows = slice(start, start + _BLOCK)
        matrix[rows] = cdist(x[rows], x)
    if measure == "energy":
        return matrix, None
    each_pair_once = np.triu_indices(M, 1)
    median = float(np.median(matrix[each_pair_once]))
    bandwidth = median or 1.0  # all examples equal: any kernel is 1
    np.square(matrix, out=matrix)  # in place: 4,000 examples are 128 MB
    matrix *= -0.5 / bandwidth**2
    return np.exp(matrix, out=matrix), bandwidth


def average_blocks(kernel: Floats, lengths: Ints, order: Ints | None = None) -> Floats:
    """Return [P, P], the mean kernel between the examples of two parties.

    lengths: [P] examples of each party, which stand party by party. order: [M] which example stands
    where; None: as they are. On the diagonal are means over pairs of different examples, so that
    they are without bias.
    """
    from scipy.sparse import csr_array

    M, P = len(kernel), len(lengths)
    parties = np.arange(P)
    owner = np.repeat(parties, lengths)
    if order is None:
        order = np.arange(M)
    # Z [P, M] has a 1 where the party holds the example: the sums over blocks are Z kernel Z'.
    Z = csr_array((np.ones(M), (owner, order)), shape=(P, M))
    by_party = np.asarray((Z @ kernel).T)  # [M, P]
    sums = Z @ by_party
    n_pairs = np.outer(lengths, lengths).astype(np.float64)
    # An example and itself are no pair.
    with_itself = kernel.diagonal()[order]
    sums[parties, parties] -= np.bincount(owner, with_itself)
    n_pairs[parties, parties] -= lengths
    return np.asarray(sums / n_pairs)


@dataclass(frozen=True)
class PartyDistances:
    """How far parties are from each other; the fields are those of `FeatureSkew`. each: [P]."""

    to_rest: float
    pairwise: float
    value: float
    value_pairwise: float
    each: Floats


def measure_distances(means: Floats, w: Floats, measure: DistanceMeasure) -> PartyDistances:
    """Return the measure of parties with shares w [P], from mean distances or kernels [P, P].

    It is 2 E k(X, Y) - E k(X, X') - E k(Y, Y') for distances, and minus that for kernels.
    """
    each, largest_each = _compare_to_rest(means, w, measure)
    between, largest_between = _compare_pairs(means, measure)
    to_rest = float(w @ each)
    largest_to_rest = float(w @ largest_each)
    weights = np.triu(np.outer(w, w), 1)  # [P, P] each pair once
    total = float(weights.sum())
    pairwise = float((weights * between).sum()) / total
    largest_pairwise = float((weights * largest_between).sum()) / total
    return PartyDistances(
        to_rest=to_rest,
        pairwise=pairwise,
        value=_divide(to_rest, largest_to_rest),
        value_pairwise=_divide(pairwise, largest_pairwise),
        each=each,
    )


def _compare_to_rest(means: Floats, w: Floats, measure: DistanceMeasure) -> tuple[Floats, Floats]:
    """Return ([P] distances of each party to all others together, [P] the largest they could be).

    In the rest of party p, the others have shares w / (1 - w_p).
    """
    others = 1 - w
    own = means.diagonal()  # E k(X, X') of each party
    to_all = means @ w  # also to oneself, with the share w_p
    cross = (to_all - w * own) / others  # E k(X, Y), Y of the rest
    # The sum over all pairs of parties, less the row and the column of p, plus its own term that
    # was taken off twice.
    of_all = w @ to_all
    within = of_all - 2 * w * to_all + w * w * own
    rest = within / others**2  # E k(Y, Y')
    distance = 2 * cross - own - rest
    if measure == "energy":
        return distance, 2 * cross
    return -1.0 * distance, own + rest


def _compare_pairs(means: Floats, measure: DistanceMeasure) -> tuple[Floats, Floats]:
    """Return ([P, P] distances between two parties, [P, P] the largest they could be)."""
    own = means.diagonal()
    cross = 2 * means
    distance = cross - own[:, None] - own
    if measure == "energy":
        return distance, cross
    # Of two parties that are infinitely far apart the kernel is 0: only their own parts are left.
    return -1.0 * distance, own[:, None] + own


def _divide(distance: float, largest: float) -> float:
    """Return the share of the largest that a distance could be; 0 where all examples are equal."""
    if not largest:
        return 0.0
    return distance / largest
