"""Feature skew: how far the features of the parties are from each other, and how far they would be if they were dealt at random."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream, stream
from ..errors import UsageError
from ..splits.recipe import JSON

if TYPE_CHECKING:
    from ..data import Data
    from ..splits.split import FederatedSplit

VERSION = 1
PARTIES = 500  # looked at, at most
EXAMPLES = 4_000  # looked at, at most, over all parties
PERMUTATIONS = 100
_BLOCK = 512  # rows of the distance matrix made at a time


@dataclass(frozen=True)
class FeatureSkew:
    """The distance of the parties' features, weighted by party size.

    measure: "energy" or "mmd", squared, without bias: 0 in expectation where all parties draw from one distribution. to_rest: each party
    against all others together; pairwise: over pairs. value, value_pairwise: the same over the largest they could be, between 0 and 1 but
    for chance. iid, iid_high: mean and 95 % quantile of `to_rest` when the same examples are dealt at random (`permutations` times);
    p_value: the share of these deals, itself counted, that are at least as far. parties: those looked at; each: [len(parties)] of to_rest;
    n_examples: features looked at; left_out: parties with fewer than 2 examples. pca: components kept, None for all features.
    """

    measure: str
    version: int
    pca: int | None
    bandwidth: float | None
    to_rest: float
    pairwise: float
    value: float
    value_pairwise: float
    iid: float
    iid_high: float
    p_value: float
    permutations: int
    n_examples: int
    left_out: int
    parties: tuple[int, ...]
    each: tuple[float, ...]

    def to_json(self) -> JSON:
        return asdict(self) | {"parties": list(self.parties), "each": list(self.each)}


def feature_skew(
    split: "FederatedSplit",
    data: "Data",
    *,
    measure: Literal["energy", "mmd"] = "energy",
    pca: int | None = None,
    per_party: int = 200,
) -> FeatureSkew:
    """Distance between the features that the parties train on: after the split's fixed transforms, flattened, uint8 divided by 255.

    data: the data set that the split was made for, with features. measure: "energy", the energy distance 2E|X-Y| - E|X-X'| - E|Y-Y'|
    (Szekely and Rizzo, J. Statist. Plann. Inference 143 (2013)); "mmd", the squared maximum mean discrepancy with the kernel
    exp(-|x-y|^2 / (2 s^2)), s the median distance of the examples looked at (Gretton et al., JMLR 13 (2012), equation 3). pca: principal
    components of the examples looked at, instead of all features. per_party: examples of a party, drawn at random; fewer where there are
    more than 4,000 together. Of more than 500 parties 500 are drawn. ValueError where the data is another one or has no features.
    """
    if measure not in ("energy", "mmd"):
        raise UsageError(f"measure is {measure!r}; it must be energy or mmd")
    if per_party < 2 or (pca is not None and pca < 1):
        raise UsageError(
            f"per_party is {per_party} and pca {pca}; at least 2 examples of a party and 1 component are needed"
        )
    _check(split, data)
    sizes = split.train.sizes
    rng = stream(0, "heterogeneity", "features")
    usable = np.flatnonzero(sizes >= 2)
    if len(usable) < 2:
        raise UsageError(
            f"{len(usable)} of {len(sizes)} parties have 2 examples or more; features of at least two such parties are compared"
        )
    parties = np.sort(usable[rng.child("parties").permutation(len(usable))[:PARTIES]])
    most = min(per_party, max(2, EXAMPLES // len(parties)))
    x = [_features(split, data, int(p), most, rng.child(f"party {p}")) for p in parties]
    lengths, flat = np.array([len(f) for f in x]), np.concatenate(x)
    kernel, bandwidth = kernel_matrix(flat if pca is None else principal(flat, pca), measure)
    w = sizes[parties] / sizes[parties].sum()
    found = _distances(block_means(kernel, lengths), w, measure)
    permute = rng.child("permutations")
    dealt = [
        _distances(block_means(kernel, lengths, permute.permutation(len(flat))), w, measure).to_rest
        for _ in range(PERMUTATIONS)
    ]
    return FeatureSkew(
        measure=measure,
        version=VERSION,
        pca=None if pca is None else min(pca, *flat.shape),
        bandwidth=bandwidth,
        to_rest=found.to_rest,
        pairwise=found.pairwise,
        value=found.value,
        value_pairwise=found.value_pairwise,
        iid=float(np.mean(dealt)),
        iid_high=float(np.quantile(dealt, 0.95)),
        p_value=(1 + sum(d >= found.to_rest for d in dealt)) / (1 + PERMUTATIONS),
        permutations=PERMUTATIONS,
        n_examples=len(flat),
        left_out=len(sizes) - len(usable),
        parties=tuple(parties.tolist()),
        each=tuple(found.each.tolist()),
    )


def _check(split: "FederatedSplit", data: "Data") -> None:
    from ..data.of_split import source_faults

    if faults := source_faults(split, data):
        raise UsageError(
            f"this is not the data set that the split was made for: {faults[0].message}"
        )
    if data.features is None:
        raise UsageError(
            "this data set was loaded without features, so theirs cannot be compared; load one that has them"
        )


def _features(split: "FederatedSplit", data: "Data", party: int, most: int, rng: Stream) -> Floats:
    """[m, D] of up to `most` random examples of a party, as it sees them."""
    from .transforming import transform

    rows = split.train.party(party).astype(np.int64)
    rows = np.sort(rows[rng.permutation(len(rows))[:most]])
    assert data.features is not None
    x = transform(split, data.features(rows), party, rows)
    scale = 255.0 if x.dtype == np.uint8 else 1.0
    return x.reshape(len(rows), -1).astype(np.float64) / scale


def principal(x: Floats, n: int) -> Floats:
    """[M, n] the first principal components of x [M, D], or all there are."""
    centred = x - x.mean(axis=0)
    if x.shape[1] <= x.shape[0]:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        return np.asarray(centred @ vectors[:, ::-1][:, :n])
    values, vectors = np.linalg.eigh(centred @ centred.T)
    return np.asarray(vectors[:, ::-1][:, :n] * np.sqrt(np.maximum(values[::-1][:n], 0.0)))


def kernel_matrix(x: Floats, measure: str) -> tuple[Floats, float | None]:
    """([M, M] Euclidean distances for "energy", Gaussian kernel for "mmd"; its bandwidth)."""
    from scipy.spatial.distance import cdist

    out = np.empty((len(x), len(x)))
    for start in range(0, len(x), _BLOCK):
        out[start : start + _BLOCK] = cdist(x[start : start + _BLOCK], x)
    if measure == "energy":
        return out, None
    bandwidth = (
        float(np.median(out[np.triu_indices(len(x), 1)])) or 1.0
    )  # all examples equal: any kernel is 1
    np.square(out, out=out)
    out *= -0.5 / bandwidth**2
    return np.exp(out, out=out), bandwidth


def block_means(kernel: Floats, lengths: Ints, order: Ints | None = None) -> Floats:
    """[P, P] mean kernel between the examples of two parties, of different examples on the diagonal. order: which example stands where."""
    from scipy.sparse import csr_array

    M = len(kernel)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    where = np.arange(M) if order is None else order
    member = csr_array((np.ones(M), (owner, where)), shape=(len(lengths), M))
    sums = member @ np.asarray((member @ kernel).T)
    own = np.bincount(owner, kernel.diagonal()[where])
    pairs = np.outer(lengths, lengths).astype(np.float64)
    at = np.arange(len(lengths))
    sums[at, at] -= own
    pairs[at, at] -= lengths
    return np.asarray(sums / pairs)


@dataclass(frozen=True)
class _Found:
    to_rest: float
    pairwise: float
    value: float
    value_pairwise: float
    each: NDArray[Any]


def _distances(means: Floats, w: Floats, measure: str) -> _Found:
    """From mean distances or kernels [P, P] between parties with shares w to the measure: against the rest, and over pairs."""
    own, sign = means.diagonal(), 1.0 if measure == "energy" else -1.0
    weighted = means @ w  # [P] to all, oneself with share w
    cross = (weighted - w * own) / (1 - w)
    rest = (w @ weighted - 2 * w * weighted + w * w * own) / (
        1 - w
    ) ** 2  # within the rest, whose parties have shares w / (1 - w_p)
    each = sign * (2 * cross - own - rest)
    pairs = np.triu(np.outer(w, w), 1)
    between = sign * (2 * means - own[:, None] - own)
    total = float(pairs.sum())
    most, most_pairs = (
        (2 * cross, 2 * means) if measure == "energy" else (own + rest, own[:, None] + own)
    )
    to_rest, pairwise = float(w @ each), float((pairs * between).sum()) / total
    largest, largest_pairs = float(w @ most), float((pairs * most_pairs).sum()) / total
    return _Found(
        to_rest,
        pairwise,
        to_rest / largest if largest else 0.0,
        pairwise / largest_pairs if largest_pairs else 0.0,
        each,
    )
