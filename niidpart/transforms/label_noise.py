"""Label noise: parties train by labels of which some are wrong."""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, Stream, uniform_field
from ..errors import UsageError
from ..registry import AtLeast, AtMost
from . import LabelTransform, LabelView

_SHARE = (AtLeast(0), AtMost(1))


def label_noise(
    n_parties: int,
    rng: Stream,
    *,
    rate: Annotated[float, "Fraction of a noisy party's labels that are wrong.", *_SHARE] = 0.2,
    least: Annotated[
        float | None,
        "Noisy parties draw their rates uniformly from here to rate; without it all have rate.",
        *_SHARE,
    ] = None,
    affected: Annotated[
        float, "Fraction of the parties that are noisy, drawn at random.", *_SHARE
    ] = 1.0,
    flips: Annotated[
        Literal["symmetric", "pair"],
        "What a wrong label is: any other class alike, or always the next one.",
    ] = "symmetric",
) -> dict[str, NDArray[Any]]:
    """Wrong labels in training and validation parts; test parts keep the true ones. Symmetric and
    pair noise of Han et al., NeurIPS 2018 (Co-teaching); noise by party of Xu et al., CVPR 2022
    (FedCorr), whose rho is affected and whose tau is least, with rate 1.

    Each label is wrong with the party's rate, whatever its class, and stays so for good. Of P
    parties affected * P are noisy, rounded. (FedCorr's code lets chance decide how many are, and a
    wrong label of its be the true one by chance.)

    Returns
    -------
    dict of str to array [P]
        seed: uint64, of the party's noise. rate: float64, 0 for a clean party.

    Raises
    ------
    UsageError
        For a least above the rate.
    """
    if least is not None and least > rate:
        raise UsageError(
            f"least is {least} and rate {rate}; least is the lower end, rate the upper"
        )
    lowest = rate if least is None else least
    drawn = lowest + (rate - lowest) * rng.child("rate").uniform(n_parties)
    n_noisy = int(np.rint(affected * n_parties))
    is_noisy = rng.child("affected").permutation(n_parties) < n_noisy
    return {
        "seed": rng.child("seed").words(n_parties),
        "rate": np.where(is_noisy, drawn, 0.0),
    }


def apply(y: Ints, rows: Ints, view: LabelView) -> Ints:
    """Return [n] the labels of `rows` as this party always has them."""
    n_classes = view.n_classes
    u, words = uniform_field(int(view.column["seed"]), rows, 1)
    is_wrong = u[:, 0] < float(view.column["rate"])
    if view.options["flips"] == "pair":
        step = np.ones(len(y), np.int64)
    else:
        # 32 bits times a number below 2**31, of which the upper half is 0..K-2
        others = np.uint64(n_classes - 1)
        step = 1 + (words[:, 0] * others >> np.uint64(32)).astype(np.int64)
    return np.where(is_wrong, (y + step) % n_classes, y)


ENTRY = LabelTransform(
    draw=label_noise, apply=apply, columns={"seed": (), "rate": _SHARE}, paper="xu2022fedcorr"
)
