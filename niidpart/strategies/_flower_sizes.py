"""flwr-datasets' partitioners whose sizes grow with the party's number."""

import numpy as np

from ..arithmetic import exact
from ..errors import UsageError
from . import Owners

_MOST_PARTIES = 700  # of the rule exponential: above, exp is no float


def deal_growing(n: int, n_parties: int, rule: str) -> Owners:
    """Return the split of LinearPartitioner, SquarePartitioner or ExponentialPartitioner.

    The first examples go to the first party; the last one takes what rounding leaves.
    """
    number = np.arange(1, n_parties + 1).astype(np.float64)
    units = number
    if rule == "square":
        units = number * number
    elif rule == "exponential":
        if n_parties > _MOST_PARTIES:
            raise UsageError(
                f"{n_parties} parties; the rule exponential has {_MOST_PARTIES} at most"
            )
        units = exact.exp(number)
    sizes = (units / exact.add_in_order(units) * n).astype(np.int64)
    sizes[-1] += n - sizes.sum(dtype=np.int64)
    if sizes.min() < 1:
        raise UsageError(
            f"by the rule {rule} party 0 of {n_parties} would have no example of {n}, and there "
            "the published code stops; use fewer parties"
        )
    return Owners(np.repeat(np.arange(n_parties), sizes), {})
