"""One party's examples, in time that grows with their number, of a split in memory or open."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..errors import UsageError
from ..registry import coerce
from ..splits.part import PARTS
from ..splits.view import SplitView
from .relabelling import RELABELLED, relabel
from .transforming import to_native, transform


class ExampleArrays(NamedTuple):
    """The examples of one party.

    x: [n, ...] as the party sees them: uint8 or floats as the data set has them, float32 with
    transforms. y: [n] class ids as the party has them, in a test part the true ones. rows: [n] of
    the data set, rising.
    """

    x: NDArray[Any]
    y: Ints
    rows: Ints


def read_examples(
    split: SplitView,
    data: Data,
    party: int,
    part: str = "train",
    *,
    lossy: bool = False,
) -> ExampleArrays:
    """Return the examples of one party in one part, with the split's fixed transforms.

    Only the party's rows and features are read. lossy: also of a split whose noise is drawn afresh
    in training, then without that noise. Raises UsageError for that without `lossy`, for data
    without features or of other labels, for a part that there is not, and for a party that is no
    whole number; IndexError where there is no such party.
    """
    party = coerce("party", party, int)
    if part not in PARTS:
        raise UsageError(f"there is no part {part!r}; the parts are {', '.join(PARTS)}")
    if data.features is None:
        raise UsageError("the data has labels but no features; .party(p) gives the rows")
    if (data.source.n, data.source.labels_sha256) != (split.source.n, split.source.labels_sha256):
        raise UsageError(
            f"the split was made for {split.source.n} examples with other labels than these "
            f"{data.source.n}; hand over that data set"
        )
    fresh = [step.name for step in split.recipe.transforms if step.params.get("fresh")]
    if fresh and not lossy:
        raise UsageError(
            f"the {fresh[0]} of this split is drawn afresh in training; for the examples without "
            "it, say lossy=True"
        )
    rows = split.parts[part].party(party).astype(np.int64)
    x = to_native(np.asarray(data.features(rows)))
    y = data.labels[rows]
    if part in RELABELLED:
        y = relabel(split, y, party, rows)
    return ExampleArrays(transform(split, x, party, rows), y, rows)
