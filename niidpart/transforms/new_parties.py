"""Hold-out of whole parties: some never train, and come when training is over."""

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Stream
from ..errors import UsageError
from ..registry import Above, AtLeast, AtMost
from . import PartyTransform

_SLACK = 1e-9  # 100 x 0.29 is 28.999999999999996 in floats


def new_parties(
    n_parties: int,
    rng: Stream,
    *,
    held_out: Annotated[
        float, "A share of the parties such as 0.2, or a number of them.", Above(0), AtMost(10**9)
    ] = 0.2,
) -> dict[str, NDArray[Any]]:
    """Parties that never train, drawn at random: of a share the floor, one at least. Yuan et al.,
    ICLR 2022, the unparticipating clients.

    Who holds what stays as it is, and so do features and labels; `fltrain run` trains without them
    and measures them on their test parts. Of fewer of them, of one seed, more are some more. Of one
    party alone none is held out.

    Returns
    -------
    dict of str to array [P]
        new: uint8, 1 for a party that never trains.

    Raises
    ------
    UsageError
        Where nobody would be left to train.
    """
    if held_out >= 1 and held_out != int(held_out):
        raise UsageError(
            f"held_out is {held_out:g}; it must be a share of the parties below 1, such as 0.2, or "
            "a whole number of them"
        )
    wanted = int(held_out)
    if held_out < 1:
        wanted = max(1, math.floor(n_parties * held_out + _SLACK))
    if wanted >= n_parties > 1:
        raise UsageError(
            f"held_out is {held_out:g}, and there are {n_parties} parties: none would be left to "
            f"train; give at most {n_parties - 1}"
        )
    place = rng.child("order").permutation(n_parties)
    return {"new": (place < min(wanted, n_parties - 1)).astype(np.uint8)}


ENTRY = PartyTransform(
    draw=new_parties, columns={"new": (AtLeast(0), AtMost(1))}, paper="yuan2022what"
)
