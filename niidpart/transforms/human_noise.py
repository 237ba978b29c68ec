"""Label noise by people: parties train by labels that annotators gave."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, Stream
from ..errors import FileFault, UsageError
from ..registry import AtLeast, AtMost
from . import LabelTransform, LabelView


def human_noise(
    n_parties: int,
    rng: Stream,
    *,
    affected: Annotated[
        float, "Fraction of the parties that are noisy, drawn at random.", AtLeast(0), AtMost(1)
    ] = 1.0,
    labels_sha256: Annotated[
        str, "Of the labels that were handed over; they are noted here by themselves."
    ] = "",
) -> dict[str, NDArray[Any]]:
    """Labels that people gave, handed over with the data set (--noisy-labels FILE, noisy_labels=),
    in training and validation parts; test parts keep the true ones. Wei et al., ICLR 2022
    (CIFAR-10N, CIFAR-100N).

    The split stores those that differ from the data set's own, so that whoever reads it needs no
    file besides.

    Returns
    -------
    dict of str to array [P]
        noisy: uint8, 1 for a party that has them.
    """
    n_noisy = int(np.rint(affected * n_parties))
    is_noisy = rng.child("affected").permutation(n_parties) < n_noisy
    return {"noisy": is_noisy.astype(np.uint8)}


def find(
    labels: Ints, noisy_labels: Ints | None, options: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """Return {"changed": [M, 2]}: rows whose label differs, ascending, and that label."""
    if noisy_labels is None:
        raise UsageError(
            "human-noise needs the labels that people gave; hand them over with the data set: "
            "--noisy-labels FILE (noisy_labels=)"
        )
    rows = np.flatnonzero(noisy_labels != labels)
    changed = np.stack([rows, noisy_labels[rows]], axis=1).astype(np.int64)
    return {"changed": changed}


def apply(y: Ints, rows: Ints, view: LabelView) -> Ints:
    """Return [n] the labels of `rows` as this party has them."""
    changed = view.draws.get("changed")
    if not view.column["noisy"] or changed is None:  # an empty draw is not stored
        return y
    if changed.ndim != 2 or changed.shape[1] != 2 or changed.dtype != np.int64:
        raise FileFault("the labels that people gave are no pairs; the split file is damaged")
    if not len(changed):
        return y
    place = np.searchsorted(changed[:, 0], rows)
    place = np.minimum(place, len(changed) - 1)
    is_changed = changed[place, 0] == rows
    seen = np.where(is_changed, changed[place, 1], y)
    if len(seen) and not 0 <= seen.min() <= seen.max() < view.n_classes:
        raise FileFault(
            f"the labels that people gave are {seen.min()}..{seen.max()}, and there are "
            f"{view.n_classes} classes; the split file is damaged"
        )
    return seen


ENTRY = LabelTransform(
    draw=human_noise,
    apply=apply,
    find=find,
    finds=("changed",),
    columns={"noisy": (AtLeast(0), AtMost(1))},
    paper="wei2022learning",
)
