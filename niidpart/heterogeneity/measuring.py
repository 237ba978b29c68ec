"""`measure`: from a table of counts to every measure of skew.

Each with its correction, an interval, and the value of an IID deal. docs/heterogeneity.md says how
they are made and why.
"""

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, stream
from ..errors import UsageError
from .chance import DealtValues, measure_deals
from .concentration import map_beta, map_beta_interval, map_beta_overall
from .estimates import Estimate, Reading
from .means import (
    MeasureKey,
    PairMeans,
    average_over_pairs,
    average_over_parties,
    scale_mean,
)
from .measures import MEASURES, LabelMeasure, MeasureRecord, SizeMeasure, load_measures
from .rounding import RoundingEvidence
from .sampled import SampleEvidence, correct_for_chance
from .skew import Measure, Skew, choose_likelihood
from .tables import PartyCounts, require_counts

_FORMS = ("to-global", "pairwise", "")  # in the order in which they are shown


def measure(
    counts: NDArray[Any], reading: Reading | None = None, moves: Ints | None = None
) -> Skew:
    """Return the skew of a table of counts.

    The same table gives the same numbers on every machine, to about 1e-9.

    Parameters
    ----------
    counts : array of int, [P, K]
        Examples of class k at party p.
    reading : {"sample", "proportions", "rough-proportions"}, optional
        What the counts of a party are taken for: a sample of its proportions, so that chance is in
        them, or these proportions themselves, rounded once or more than once. Counts cannot tell.
        None is for a table of which nobody knows: it is measured as rough proportions, so that a
        value stays as it is.
    moves : array of int, [M, 2], optional
        The party that it came from, and the one that it went to, of each example that was moved so
        that every party meets a minimum size.

    Returns
    -------
    Skew

    Raises
    ------
    UsageError
        For anything but a table of counts, another reading, and moves of no such parties.

    Examples
    --------
    >>> import numpy as np
    >>> from niidpart.heterogeneity import measure
    >>> skew = measure(np.array([[90, 10], [10, 90]]))
    >>> {m.name: round(m.value, 3) for m in skew.measures if m.form == "pairwise"}
    {'emd': 0.8, 'hellinger': 0.4, 'jensen-shannon': 0.531, 'total-variation': 0.8}
    """
    counts = require_counts(counts)
    if reading is not None and reading not in get_args(Reading):
        names = ", ".join(get_args(Reading))
        raise UsageError(
            f"reading is {reading!r}; it must be one of {names}, or None where nobody knows"
        )
    sizes = counts.sum(axis=1, dtype=np.int64)
    found: list[Measure] = []
    if sizes.any():
        table = PartyCounts.of(counts)
        among_held = renumber_moves(moves, sizes > 0)
        found = [*_measure_labels(table, reading, among_held), *_measure_sizes(sizes)]
    likelihood = choose_likelihood(reading)
    low, high = find_beta_interval(counts, reading)
    return Skew(
        reading=reading,
        map_beta=map_beta(counts, likelihood=likelihood),
        map_beta_overall=map_beta_overall(counts, likelihood=likelihood),
        map_beta_low=low,
        map_beta_high=high,
        measures=tuple(found),
        n_empty=int((sizes == 0).sum()),
    )


def find_beta_interval(counts: NDArray[Any], reading: Reading | None) -> tuple[float, float]:
    """Return the 95 % interval of the beta of all parties of a table of counts [P, K]."""
    # Strategies that deal proportions divide each class among the parties, and one that samples.
    by_class = reading in ("proportions", "sample")
    return map_beta_interval(counts, likelihood=choose_likelihood(reading), by_class=by_class)


def evaluate_measure(name: str, counts: NDArray[Any]) -> float:
    """Return one measure of a table of counts, uncorrected.

    Parameters
    ----------
    name : str
        A file of `niidpart/heterogeneity/measures`.
    counts : array of int, [P, K]
        Examples of class k at party p.

    Returns
    -------
    float
        0 to 1. Of a distance it is the one to the whole.

    Raises
    ------
    UsageError
        For a name that is no measure.

    Examples
    --------
    >>> import numpy as np
    >>> from niidpart.heterogeneity import evaluate_measure
    >>> round(evaluate_measure("hellinger", np.array([[90, 10], [10, 90]])), 3)
    0.36
    """
    record = MEASURES.record(name)
    if isinstance(record, SizeMeasure):
        sizes = counts.sum(axis=1, dtype=np.int64)
        return float(record.scale(record.value(sizes), len(counts)))
    table = PartyCounts.of(counts)
    key = MeasureKey(name, "" if isinstance(record, LabelMeasure) else "to-global")
    return scale_mean(key, average_over_parties(table)[key], table.g, table.w)


def _measure_sizes(sizes: Ints) -> list[Measure]:
    """Quantity skew, over all parties, those without examples too.

    Nothing is sampled, so there is no interval.
    """
    P, n = len(sizes), int(sizes.sum())
    found = []
    for name, record in load_measures(SizeMeasure).items():
        raw = float(record.value(sizes))
        value = float(record.scale(raw, P))
        iid = float(record.scale(record.even(n, P), P))
        found.append(
            Measure(
                name=name,
                form="",
                version=record.version,
                raw=raw,
                value=value,
                corrected=correct_for_chance(value, iid, record.power),
                low=None,
                high=None,
                iid=iid,
                average="parties",
                n=P,
                sampled=False,
            )
        )
    return found


def renumber_moves(moves: Ints | None, is_held: NDArray[np.bool_]) -> Ints:
    """Return the moves [M, 2] among parties that hold something, by their number among these."""
    if moves is None:
        return np.zeros((0, 2), np.int64)
    moves = np.asarray(moves)
    if moves.ndim != 2 or moves.shape[1] != 2 or moves.dtype.kind not in "iu":
        raise UsageError(
            f"moves is an array of {moves.dtype}, {list(moves.shape)}; it must be of integers, "
            "[M, 2]: the party that each example came from, and the one that it went to"
        )
    P = len(is_held)
    if moves.size and not 0 <= moves.min() <= moves.max() < P:
        named = f"{moves.min()} to {moves.max()}"
        raise UsageError(f"moves names the parties {named}; there are {P}, from 0 to {P - 1}")
    number = np.cumsum(is_held) - 1
    renumbered: Ints = number[moves[is_held[moves].all(axis=1)]]
    return renumbered


def _measure_labels(table: PartyCounts, reading: Reading | None, moves: Ints) -> list[Measure]:
    """Label skew, over the parties that hold something."""
    pairs = average_over_pairs(table, stream(0, "heterogeneity", "pairs"))
    point = average_over_parties(table)
    if len(table.sizes) > 1:
        point |= pairs.means
    is_sample = reading == "sample"
    dealt = measure_deals(table, stream(0, "heterogeneity", "iid"), with_bias=is_sample)
    estimate: Callable[[MeasureKey], Estimate]
    if is_sample:
        estimate = SampleEvidence.collect(table, point, pairs, dealt, moves).estimate
    else:
        is_rough = reading != "proportions"
        evidence = RoundingEvidence.collect(table, point, pairs, moves, is_rough=is_rough)
        estimate = evidence.estimate
    keys = sorted(point, key=lambda key: (_FORMS.index(key.form), key.name))
    found = []
    for key in keys:
        found.append(_build_measure(key, point[key], estimate(key), table, pairs, dealt))
    return found


def _build_measure(
    key: MeasureKey,
    mean: float,
    estimate: Estimate,
    table: PartyCounts,
    pairs: PairMeans,
    dealt: DealtValues,
) -> Measure:
    record = load_measures(MeasureRecord)[key.name]
    n_parties = len(table.sizes)
    is_pairwise = key.form == "pairwise"
    if is_pairwise:
        average = "pairs, weighted by the product of their sizes"
    else:
        average = "parties, weighted by size"
    return Measure(
        name=key.name,
        form=key.form,
        version=record.version,
        raw=_show(record, mean),
        value=scale_mean(key, mean, table.g, table.w),
        corrected=estimate.corrected,
        low=estimate.low,
        high=estimate.high,
        iid=float(dealt.values[key].mean()),
        average=average,
        n=pairs.n_pairs if is_pairwise else n_parties,
        sampled=is_pairwise and pairs.n_pairs < n_parties * (n_parties - 1) // 2,
    )


def _show(record: MeasureRecord, mean: float) -> float:
    """Return a mean as people know the measure."""
    if isinstance(record, LabelMeasure) and record.show is not None:
        return float(record.show(mean))
    return mean
