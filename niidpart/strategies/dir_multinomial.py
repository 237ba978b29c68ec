"""Label skew by a Dirichlet draw per class, each example dealt by chance."""

import numpy as np

from ..arithmetic.rng import Ints, Stream
from . import Beta, Deal, MinSize
from ._multinomial import draw_counts

__all__ = ["multinomial_dirichlet"]

PAPER = "hsu2019measuring"
READING = "sample"  # each example goes to a party by chance: of which class it is, is drawn


def multinomial_dirichlet(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    beta: Beta = 0.5,
    min_size: MinSize = 10,
) -> Deal:
    """Label skew: p_k ~ Dir(beta) for each class, and each example of it goes to a party drawn by
    p_k. dir with multinomial counts in place of rounded ones; examples are drawn one by one as in
    Hsu et al., 2019, section 3.

    So parties with equal proportions differ by chance, as samples of one population do. (Hsu et
    al. draw the proportions by party, of a fixed size each: party-dir.) Small parties are filled
    up to min_size by moving rows.

    Returns
    -------
    Deal
        Draws: proportions [K, P]; counts [K, P], before parties are filled up; moved [M, 3]
        (row, from, to).
    """
    n_classes = len(class_sizes)
    proportions = rng.draw("proportions", lambda s: s.dirichlet(beta, (n_classes, n_parties)))

    def draw_table(s: Stream) -> Ints:
        sizes = class_sizes.tolist()
        rows = [draw_counts(s, p, n) for p, n in zip(proportions, sizes, strict=True)]
        return np.stack(rows)

    counts = rng.draw("counts", draw_table)
    return Deal(
        holders=np.tile(np.arange(n_parties, dtype=np.int32), n_classes),
        sizes=counts.reshape(-1),
        draws={"proportions": proportions, "counts": counts},
        min_size=min_size,
        rank=rng.child("rank").permutation(n_parties),
    )
