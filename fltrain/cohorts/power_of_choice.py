"""Candidates with the highest losses. Cho, Wang, Joshi, AISTATS 2022."""

import math

import torch
from torch import Tensor

from niidpart.errors import UsageError

from . import CohortRule
from ._known import CohortDraw, KnownParties
from ._proportion import draw_by_examples


def power_of_choice(parties: KnownParties, draw: CohortDraw, *, candidates: int | None) -> Tensor:
    """Of candidates drawn in proportion to examples, those on whose examples the loss is highest.

    Twice as many candidates as are chosen, unless told otherwise; of equal losses the lower party.
    """
    n_drawn = 2 * draw.size if candidates is None else candidates
    drawn = draw_by_examples(parties.n, n_drawn, draw.key).sort().values
    losses = torch.tensor(draw.measure_losses(drawn.tolist()), dtype=torch.float64)
    # a loss that is no number is the worst there is: training that party says what is wrong
    ranked = losses.nan_to_num(nan=math.inf, posinf=math.inf)
    highest_first = torch.argsort(ranked, descending=True, stable=True)
    return drawn[highest_first[: draw.size]]


def require_candidates(parties: KnownParties, size: int, *, candidates: int | None) -> None:
    """Raise UsageError for fewer candidates than are chosen, or more than there are parties."""
    n_parties = len(parties)
    if candidates is not None and not size <= candidates <= n_parties:
        raise UsageError(
            f"candidates is {candidates}; it must be at least the cohort, {size}, and at most "
            f"{n_parties}: the split has {parties.describe_number()}"
        )


ENTRY = CohortRule(choose=power_of_choice, require=require_candidates)
