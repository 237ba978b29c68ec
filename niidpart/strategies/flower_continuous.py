"""Replay: flwr-datasets' ContinuousPartitioner, row by row."""

from typing import Annotated, Literal

import numpy as np

from ..arithmetic.deal import split_evenly
from ..arithmetic.exact import Floats
from ..arithmetic.numpy_draws.floats import add_float32_as_numpy
from ..arithmetic.numpy_draws.modern import ModernDraws
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import AtLeast, AtMost
from . import Deal
from ._clusters import ReadRows
from ._replays import cut_in_order

__all__ = ["flower_continuous"]

PEER = "flower"
PAPER = "beutel2020flower"
READING = {"continuous": None}  # by rule: labels are not looked at
SKEWED_BY = {"continuous": "strictness"}  # by rule
RULES = {"continuous": ("strictness", "column", "embeddings_sha256")}  # options of each rule

_LEAST_DEVIATION = 1e-6


def flower_continuous(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    features: ReadRows | None,
    rule: Annotated[Literal["continuous"], "Which of its partitioners."] = "continuous",
    version: Annotated[Literal["0.6.1"], "Of which release."] = "0.6.1",
    strictness: Annotated[
        float, "From 0, by chance alone, to 1, by the property alone.", AtLeast(0), AtMost(1)
    ] = 0.5,
    column: Annotated[
        int, "Which number of a row is the property (partition_by there), from 0.", AtLeast(0)
    ] = 0,
    embeddings_sha256: Annotated[
        str, "Of embeddings that were handed over; they are noted here by themselves."
    ] = "",
) -> Deal:
    """Replay of flwr-datasets' ContinuousPartitioner: examples sorted by a property, blended with
    noise, and cut evenly. Beutel et al., 2020.

    The property is a number of each example: a column of the features, or of embeddings that are
    handed over (--embeddings FILE, embeddings=). Equal properties with strictness 1, whose order
    there depends on the processor, keep that of the rows. Labels are not looked at. What it draws
    is drawn again here, so `rng` is not used.

    Returns
    -------
    Deal

    Raises
    ------
    UsageError
        Without features, for a column that there is not, and where the published code stops.
    """
    n = len(labels)
    values = _read_column(features, n, column)
    mean = add_float32_as_numpy(values) / np.float32(n)
    apart = values - mean
    deviation = np.sqrt(add_float32_as_numpy(apart * apart) / np.float32(n))
    if not deviation >= _LEAST_DEVIATION:
        raise UsageError(
            f"column {column} deviates by {deviation}, and there the published code stops: it "
            "needs numbers that differ, none of them missing; choose another column (--column N, "
            "column=)"
        )
    noise = ModernDraws(seed).normals(n)
    blended: Floats = np.float32(strictness) * (apart / deviation) + (1 - strictness) * noise
    order = np.argsort(blended, kind="stable")
    return cut_in_order(order, split_evenly(n, n_parties))


def _read_column(read: ReadRows | None, n: int, column: int) -> Floats:
    """Return [n] float32 the property of each example."""
    if read is None:
        raise UsageError(
            "continuous sorts by a property, and this data set has labels alone; hand over "
            "embeddings (--embeddings FILE, embeddings=) or a data set with features"
        )
    rows = np.asarray(read(slice(0, n))).reshape(n, -1)
    if column >= rows.shape[1]:
        raise UsageError(f"column is {column}; a row has {rows.shape[1]} numbers, from 0 on")
    values: Floats = rows[:, column].astype(np.float32)
    return values
