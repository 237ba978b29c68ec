"""Label and quantity skew at once, each with its own concentration, and both exactly."""

from typing import Annotated

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import Beta, Deal, MinSize
from ._margins import deal_with_sizes

__all__ = ["label_and_quantity"]

PAPER = "li2022silos"
READING = "rough-proportions"  # each round of the sharing out rounds anew
SIZED_BY = "size_beta"


def label_and_quantity(
    class_sizes: Ints,
    n_parties: int,
    rng: Stream,
    *,
    beta: Beta = 0.5,
    size_beta: Annotated[
        float,
        "Concentration of the parties' sizes: 0.1 is strong skew, 100 nearly none.",
        AtLeast(1e-9),
        AtMost(1e9),
    ] = 0.5,
    min_size: MinSize = 10,
) -> Deal:
    """Label and quantity skew: sizes in proportions ~ Dir(size_beta), and each party mixes its
    classes in proportions q_i ~ Dir(beta). The two skews of Li et al., ICDE 2022, sections IV-B
    and IV-D, in one split.

    Sizes are met exactly and every example is dealt once, by the sharing out of party-dir: where
    parties want more of a class than there is, it is shared in proportion to what they want. (A
    Dirichlet draw by class, as dir has it, makes sizes unequal too, and nobody says how much.)

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
        return s.dirichlet(size_beta, (n_parties,))

    return deal_with_sizes(
        class_sizes, n_parties, rng, beta=beta, draw_relative=draw_relative, min_size=min_size
    )
