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
    centred = x - x.mean(axis=0)
    if x.shape[1] <= x.shape[0]:
        _, vectors = np.linalg.eigh(centred.T @ centred)  # values rise: the last is the largest
        return np.asarray(centred @ vectors[:, ::-1][:, :n])
    # Fewer examples than features: the smaller matrix of inner products has the same components.
    values, vectors = np.linalg.eigh(centred @ centred.T)
    scale = np.sqrt(np.maximum(values[::-1][:n], 0.0))  # rounding can leave -1e-17
    return np.asarray(vectors[:, ::-1][:, :n] * scale)


def compute_kernel(x: Floats, measure: DistanceMeasure) -> tuple[Floats, float | None]:
    """Return the matrix [M, M] between the examples x [M, D], and its bandwidth.

    "energy": Euclidean distances, without a bandwidth. "mmd": the kernel exp(-|x-y|^2 / (2 s^2)),
    with the bandwidth s, the median distance.
    """
    from scipy.spatial.distance import cdist

    matrix = np.empty((len(x), len(x)))
    for start in range(0, len(x), _BLOCK):
        matrix[start : start + _BLOCK] = cdist(x[start : start + _BLOCK], x)
    if measure == "energy":
        return matrix, None
    median = float(np.median(matrix[np.triu_indices(len(x), 1)]))
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

    M = len(kernel)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    where = np.arange(M) if order is None else order
    member = csr_array((np.ones(M), (owner, where)), shape=(len(lengths), M))
    sums = member @ np.asarray((member @ kernel).T)
    pairs = np.outer(lengths, lengths).astype(np.float64)
    # An example and itself are no pair.
    diagonal = np.arange(len(lengths))
    sums[diagonal, diagonal] -= np.bincount(owner, kernel.diagonal()[where])
    pairs[diagonal, diagonal] -= lengths
    return np.asarray(sums / pairs)


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

    It is 2 E k(X, Y) - E k(X, X') - E k(Y, Y') for distances, and minus that for kernels: against
    the rest, and over pairs.
    """
    own = means.diagonal()
    sign = 1.0 if measure == "energy" else -1.0

    # [P] between a party and the rest, and within the rest, whose parties have shares w / (1 - w_p)
    to_all = means @ w  # also to oneself, with the share w_p
    cross = (to_all - w * own) / (1 - w)
    within = w @ to_all - 2 * w * to_all + w * w * own
    rest = within / (1 - w) ** 2
    each = sign * (2 * cross - own - rest)
    largest_each = 2 * cross if measure == "energy" else own + rest

    # [P, P] between two parties
    weights = np.triu(np.outer(w, w), 1)  # each pair once
    between = sign * (2 * means - own[:, None] - own)
    largest_between = 2 * means if measure == "energy" else own[:, None] + own
    total = float(weights.sum())

    to_rest = float(w @ each)
    pairwise = float((weights * between).sum()) / total
    return PartyDistances(
        to_rest=to_rest,
        pairwise=pairwise,
        value=_divide(to_rest, float(w @ largest_each)),
        value_pairwise=_divide(pairwise, float((weights * largest_between).sum()) / total),
        each=each,
    )


def _divide(distance: float, largest: float) -> float:
    """Return the share of the largest that a distance could be; 0 where all examples are equal."""
    return distance / largest if largest else 0.0
