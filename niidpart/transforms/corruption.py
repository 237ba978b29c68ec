"""Feature skew: each party's images are corrupted, as common corruptions of CIFAR-10-C are."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.deal import repeat_evenly
from ..arithmetic.rng import Ints, Stream
from ..registry import AtLeast, AtMost
from . import FeatureTransform
from ._corruptions import KINDS, LEVELS
from ._images import require_images

_SEVERITY = (AtLeast(0), AtMost(LEVELS))


def corruption(
    n_parties: int,
    rng: Stream,
    *,
    corruption: Annotated[
        Literal[
            "each",
            "gaussian-noise",
            "speckle-noise",
            "impulse-noise",
            "gaussian-blur",
            "contrast",
            "brightness",
            "saturate",
            "pixelate",
        ],
        "Which corruption all parties have; each: the eight are dealt evenly.",
    ] = "each",
    severity: Annotated[int, "From 1 to 5, as CIFAR-10-C has them; 0 is clean.", *_SEVERITY] = 3,
    rising: Annotated[
        bool, "Party i of P has severity * i / P, rounded up; else all have the same."
    ] = False,
) -> dict[str, NDArray[Any]]:
    """Corruptions at the severities of CIFAR-10-C, one kind at a party. Hendrycks and Dietterich,
    ICLR 2019, eight of their nineteen.

    Levels are those of images of 32 x 32 whatever the size. Results are clipped to [0, 1], as in
    the paper. With each, the kinds are dealt to parties in random order. The others (fog, frost,
    snow, JPEG, ...) need files, or libraries that do not give the same bits everywhere. For images
    alone.

    Returns
    -------
    dict of str to array [P]
        seed: uint64, of the party's noise. kind: int64, the place in the list of kinds. severity:
        int64.
    """
    if corruption == "each":
        kind = np.empty(n_parties, np.int64)
        order = rng.child("order").permutation(n_parties)
        kind[order] = repeat_evenly(np.arange(len(KINDS)), n_parties)
    else:
        kind = np.full(n_parties, list(KINDS).index(corruption))
    level = np.full(n_parties, severity)
    if rising:
        level = -(-severity * np.arange(1, n_parties + 1) // n_parties)
    return {"seed": rng.child("seed").words(n_parties), "kind": kind, "severity": level}


def apply(
    x: NDArray[Any], rows: Ints, column: Mapping[str, Any], options: Mapping[str, Any]
) -> NDArray[Any]:
    """Return the images of this party, corrupted; each of `rows` always in the same way."""
    images = require_images("corruption", x)
    severity, kind = int(column["severity"]), int(column["kind"])
    if not severity:
        return images
    corrupt = list(KINDS.values())[kind]
    changed = corrupt(images, rows, int(column["seed"]), severity - 1)
    return np.clip(changed, np.float32(0), np.float32(1))


ENTRY = FeatureTransform(
    draw=corruption,
    apply=apply,
    columns={
        "seed": (),
        "kind": (AtLeast(0), AtMost(len(KINDS) - 1)),
        "severity": _SEVERITY,
    },
    paper="hendrycks2019benchmarking",
)
