"""Replay: flwr-datasets' DistributionPartitioner, row by row."""

from typing import Annotated, Literal

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.numpy_draws.floats import add_as_numpy, exp_one
from ..arithmetic.numpy_draws.modern import ModernDraws
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import AtLeast, AtMost
from . import Owners
from ._held_classes import require_class_count
from ._replays import list_rows

__all__ = ["flower_distribution"]

PEER = "flower"
PAPER = "beutel2020flower"
READING = {"distribution": "proportions"}  # by rule
SKEWED_BY = {"distribution": "k"}  # by rule
RULES = {  # the options that each rule takes
    "distribution": ("table", "deviation", "table_seed", "k", "preassigned")
}


def flower_distribution(
    labels: Ints,
    n_parties: int,
    rng: Stream,
    *,
    seed: int,
    rule: Annotated[Literal["distribution"], "Which of its partitioners."] = "distribution",
    version: Annotated[Literal["0.6.1"], "Of which release."] = "0.6.1",
    table: Annotated[
        str,
        "Rows of distribution_array, one a class, as text: 1,2;3,4. Nothing: it is drawn "
        "log-normal, as its documentation does.",
    ] = "",
    deviation: Annotated[
        float,
        "Of the logarithms of a table that is drawn (sigma there).",
        AtLeast(0),
        AtMost(100),  # beyond that floats have no such number
    ] = 2.0,
    table_seed: Annotated[int, "Seed of a table that is drawn.", AtLeast(0)] = 2024,
    k: Annotated[
        int, "Classes that each party holds (num_unique_labels_per_partition there).", AtLeast(1)
    ] = 2,
    preassigned: Annotated[
        int,
        "Examples of each of its classes that a party has beside the table's "
        "(preassigned_num_samples_per_label there).",
        AtLeast(0),
    ] = 5,
) -> Owners:
    """Replay of flwr-datasets' DistributionPartitioner: party p holds the classes p, p + 1, ...,
    each divided by its row of a table. Beutel et al., 2020, after Li et al., MLSys 2020.

    The table has a row for each class and a column for each of its holders, k * P / K of them; P is
    a multiple of K. Without a table it is that of the partitioner's documentation,
    `default_rng(table_seed).lognormal(0, deviation, P * k)` in rows. It is rescaled to the sizes of
    the classes, as by default there. What it draws is drawn again here, so `rng` is not used.

    Returns
    -------
    Owners
        Draws: table [K, k * P / K].

    Raises
    ------
    UsageError
        For a table of another shape, and where the published code stops.
    """
    class_rows = [rows for rows in list_rows(labels) if len(rows)]
    n_classes = len(class_rows)
    require_class_count(k, n_classes)
    if n_parties % n_classes:
        raise UsageError(
            f"{n_parties} parties and {n_classes} classes; the published code takes a multiple of "
            "the classes"
        )
    n_holders = k * n_parties // n_classes
    if table:
        weights = _read_table(table, n_classes, n_holders)
    else:
        weights = _draw_table(deviation, table_seed, n_classes, n_holders)
    draws = ModernDraws(seed)
    owner = np.full(len(labels), -1, np.int64)
    for label, (rows, row) in enumerate(zip(class_rows, weights, strict=True)):
        counts = _share_out(row, len(rows), preassigned)
        # What rounding leaves goes to one of them by lot, behind the last: it is there a piece too.
        lucky = draws.below(n_holders)
        holders = _list_holders(label, n_parties, n_classes, k)
        owner[rows] = np.repeat(np.append(holders, holders[lucky]), counts)
    return Owners(owner, {"table": weights})


def _read_table(text: str, n_classes: int, n_holders: int) -> Floats:
    """Return [K, H] the numbers of a text; UsageError for another shape or no numbers."""
    try:
        rows = [[float(number) for number in row.split(",")] for row in text.split(";")]
    except ValueError as error:
        raise UsageError(f"table is no rows of numbers such as 1,2;3,4: {error}") from None
    lengths = sorted({len(row) for row in rows})
    if len(rows) != n_classes or lengths != [n_holders]:
        raise UsageError(
            f"table has {len(rows)} rows of {' or '.join(map(str, lengths))} numbers; "
            f"{n_classes} rows of {n_holders} are needed, one a class, k * P / K numbers each"
        )
    numbers = np.array(rows)
    if not (np.isfinite(numbers).all() and numbers.min() >= 0 and numbers.max(axis=1).min() > 0):
        raise UsageError("table has numbers below 0 or a row of zeros; shares of each are needed")
    return numbers


def _draw_table(deviation: float, table_seed: int, n_classes: int, n_holders: int) -> Floats:
    """Return [K, H] what `lognormal(0, deviation)` draws."""
    normals = (deviation * ModernDraws(table_seed).normals(n_classes * n_holders)).tolist()
    return np.array([exp_one(normal) for normal in normals]).reshape(n_classes, n_holders)


def _share_out(weights: Floats, n: int, preassigned: int) -> Ints:
    """Return [H + 1] how many of n examples each holder gets, and how many rounding leaves."""
    n_free = n - preassigned * len(weights)
    if n_free < len(weights):
        raise UsageError(
            f"a class has {n} examples for {len(weights)} holders with {preassigned} each and one "
            "more; lower preassigned, or use fewer parties"
        )
    counts = np.floor(weights / add_as_numpy(weights) * float(n_free)).astype(np.int64)
    counts += preassigned
    return np.append(counts, n - counts.sum(dtype=np.int64))


def _list_holders(label: int, n_parties: int, n_classes: int, k: int) -> Ints:
    """Return the parties that hold a class, ascending: p holds p, p + 1, ... k of them, in turn."""
    parties = np.arange(n_parties)
    return parties[(label - parties) % n_classes < k]
