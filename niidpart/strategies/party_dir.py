"""Label skew by a Dirichlet draw per party, with parties of unequal size."""

from typing import Annotated

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import Beta, Deal, MinSize
from ._margins import deal_with_sizes

__all__ = ["party_dirichlet"]

PAPER = "cha2025quantity"
READING = "rough-proportions"  # each round of the sharing out rounds anew
SIZED_BY = "spread"


def party_dirichlet(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    beta: Beta = 0.5,
    spread: Annotated[
        float,
        "Half-width of the parties' sizes as a fraction of N/P; 0 for equal sizes.",
        AtLeast(0),
        AtMost(1),
    ] = 0.0,
    min_size: MinSize = 10,
) -> Deal:
    """Each party mixes its classes in proportions q_i ~ Dir(beta); sizes ~ U around N/P. Cha and
    Chang, Information 2025, section 3.2.

    spread is the paper's lambda * P / N; the sizes are rescaled to sum to N. Every example is
    dealt once. Where parties want more of a class than there is, it is shared among them in
    proportion to what they want; what they then lack they take from the classes that are left, by
    their own q_i (where that is 0 for all of these: as much of each as is left).

    Returns
    -------
    Deal
        Draws: proportions [P, K]; sizes [P]; moved [M, 3] (row, from, to).

    Raises
    ------
    UsageError
        For stored draws that are not those of a split of these labels.
    """

    def draw_relative(s: Stream) -> Floats:
        return 1 + spread * (2 * s.uniform(n_parties) - 1)  # 1 - spread .. 1 + spread

    return deal_with_sizes(
        class_sizes, n_parties, rng, beta=beta, draw_relative=draw_relative, min_size=min_size
    )
