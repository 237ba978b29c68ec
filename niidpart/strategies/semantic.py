"""Skew without labels: a Dirichlet draw for each cluster of features or embeddings."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import apportion, deal_rows, fill_up
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import AtLeast, AtMost
from . import Beta, MinSize, Owners
from ._clusters import ReadRows, cluster_rows

__all__ = ["semantic_dirichlet"]

PAPER = "yuan2022what"
# Clusters are shared out as proportions, and of which class an example of one is, chance decides:
# how much of a party's mix is luck, the clusters say, and no reading.
READING = None


def semantic_dirichlet(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    features: ReadRows | None,
    clusters: Annotated[
        int,
        "Clusters that are looked for; about as many as there are kinds.",
        AtLeast(1),
        AtMost(4096),
    ] = 10,
    beta: Beta = 0.5,
    min_size: MinSize = 10,
    embeddings_sha256: Annotated[
        str, "Of embeddings that were handed over; they are noted here by themselves."
    ] = "",
) -> Owners:
    """Semantic skew: each cluster of the features, or of embeddings that are handed over
    (--embeddings FILE, embeddings=), is divided among the parties in proportions ~ Dir(beta);
    labels are not looked at. After Yuan et al., ICLR 2022, the semantic partition.

    Clusters are those of k-means (k-means++ and at most 25 rounds on 16,384 rows, then the nearest
    centre for all), in integers of 16 bits, so that they are the same on every machine. Counts by
    largest remainder; small parties are filled up to min_size by moving rows. (The paper clusters
    class by class, by a Gaussian mixture on PCA of a network's features, and matches clusters of
    different classes; Flower's code does as the paper.)

    Returns
    -------
    Owners
        Draws: cluster [N] uint16; proportions [C, P]; moved [M, 3] (row, from, to).

    Raises
    ------
    UsageError
        Without features, for rows that are not finite, and for more clusters than rows.
    """
    n = len(labels)
    if clusters > n:
        raise UsageError(f"{clusters} clusters of {n} examples; ask for at most {n}")

    def find_clusters(s: Stream) -> NDArray[np.uint16]:
        if features is None:
            raise UsageError(
                "semantic looks at features, and this data set has labels alone; hand over "
                "embeddings (--embeddings FILE, embeddings=) or a data set with features"
            )
        return cluster_rows(features, n, clusters, s)

    cluster = rng.draw("cluster", find_clusters)
    cluster_of = _require_clusters(cluster, n, clusters)
    proportions = rng.draw("proportions", lambda s: s.dirichlet(beta, (clusters, n_parties)))
    rank = rng.child("rank").permutation(n_parties)
    sizes = np.bincount(cluster_of, minlength=clusters)
    shares = zip(proportions, sizes.tolist(), strict=True)
    counts = np.stack([apportion(p, size, rank) for p, size in shares])
    order = rng.child("order").grouped_permutation(cluster_of, clusters)
    owner, moved = fill_up(deal_rows(counts, order), cluster_of, n_parties, min_size, rank, order)
    return Owners(owner, {"cluster": cluster, "proportions": proportions, "moved": moved})


def _require_clusters(cluster: NDArray[np.uint16], n: int, n_clusters: int) -> Ints:
    """Return clusters [N] as int64; UsageError for stored ones that are not those of the labels."""
    ids = cluster.astype(np.int64)
    if ids.shape != (n,) or ids.min() < 0 or ids.max() >= n_clusters:
        raise UsageError("the stored clusters are not those of a split of these labels")
    return ids
