"""`measure`: from a table of counts to every measure of skew.

Each with its correction for small samples, an interval, and the value of an IID deal.
docs/heterogeneity.md says how they are made and why.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, stream
from .chance import REPLICATES, DealtValues, bootstrap_deviations, measure_deals
from .concentration import map_beta, map_beta_overall
from .means import (
    MeasureKey,
    PairMeans,
    average_bias,
    average_over_pairs,
    average_over_parties,
    scale_mean,
    standard_error,
)
from .measures import MEASURES, LabelMeasure, MeasureRecord, SizeMeasure, load_measures
from .posterior import draw_truths
from .skew import Measure, Skew
from .tables import PartyCounts, require_counts

_ROOM = 1e-9  # of the scale: where an IID deal comes so near to 1, nothing can be told from chance
_NORMAL_REACH = 1.96  # standard errors on either side hold 95 % of a normal distribution
_FORMS = ("to-global", "pairwise", "")  # in the order in which they are shown


def measure(counts: NDArray[Any]) -> Skew:
    """Return the skew of a table of counts.

    The same table gives the same numbers on every machine, to about 1e-9.

    Parameters
    ----------
    counts : array of int, [P, K]
        Examples of class k at party p.

    Returns
    -------
    Skew

    Raises
    ------
    UsageError
        For anything but a table of counts.

    Examples
    --------
    >>> import numpy as np
    >>> from niidpart.heterogeneity import measure
    >>> skew = measure(np.array([[90, 10], [10, 90]]))
    >>> {m.name: round(m.value, 3) for m in skew.measures if m.form == "pairwise"}
    {'emd': 0.8, 'hellinger': 0.4, 'jensen-shannon': 0.531, 'total-variation': 0.8}
    """
    counts = require_counts(counts)
    sizes = counts.sum(axis=1, dtype=np.int64)
    found: list[Measure] = []
    if sizes.any():
        found = [*_measure_labels(PartyCounts.of(counts)), *_measure_sizes(sizes)]
    return Skew(
        map_beta=map_beta(counts),
        map_beta_overall=map_beta_overall(counts),
        measures=tuple(found),
        n_empty=int((sizes == 0).sum()),
    )


def evaluate_measure(name: str, counts: NDArray[Any]) -> float:
    """Return one measure of a table of counts [P, K], uncorrected, on its scale of 0 to 1.

    Of a distance it is the one to the whole.
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


@dataclass(frozen=True)
class _Evidence:
    """All that was computed of a table, for every measure of labels.

    point: the means. pairs: the pairwise ones, and how many pairs were looked at. bias: what small
    samples add to the means. spread: of bootstrap replicates. truths: values of endless parties
    that would look like this. dealt: values of IID deals.
    """

    point: dict[MeasureKey, float]
    pairs: PairMeans
    bias: dict[MeasureKey, float]
    spread: dict[MeasureKey, Floats]
    truths: dict[MeasureKey, Floats]
    dealt: DealtValues


def _measure_labels(table: PartyCounts) -> list[Measure]:
    """Label skew, over the parties that hold something."""
    pairs = average_over_pairs(table, stream(0, "heterogeneity", "pairs"))
    point = average_over_parties(table)
    if len(table.sizes) > 1:
        point |= pairs.means
    evidence = _Evidence(
        point=point,
        pairs=pairs,
        bias=average_bias(table, stream(0, "heterogeneity", "bias")),
        spread=bootstrap_deviations(table, point, stream(0, "heterogeneity", "bootstrap")),
        truths=draw_truths(table, point, stream(0, "heterogeneity", "posterior")),
        dealt=measure_deals(table, stream(0, "heterogeneity", "iid")),
    )
    keys = sorted(point, key=lambda key: (_FORMS.index(key.form), key.name))
    return [_measure_one(key, table, evidence) for key in keys]


def _measure_one(key: MeasureKey, table: PartyCounts, evidence: _Evidence) -> Measure:
    record = load_measures(MeasureRecord)[key.name]
    mean = evidence.point[key]
    less_bias = mean - evidence.bias.get(key, 0.0)
    value = scale_mean(key, less_bias, table.g, table.w)
    iid = float(evidence.dealt.less_bias[key].mean())
    low, high = _estimate_interval(key, value, table, evidence)
    n_parties, n_pairs = len(table.sizes), evidence.pairs.n_pairs
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
        corrected=correct_for_chance(value, iid, record.power),
        low=low,
        high=high,
        iid=float(evidence.dealt.values[key].mean()),
        average=average,
        n=n_pairs if is_pairwise else n_parties,
        sampled=is_pairwise and n_pairs < n_parties * (n_parties - 1) // 2,
    )


def _show(record: MeasureRecord, mean: float) -> float:
    """Return a mean as people know the measure."""
    if isinstance(record, LabelMeasure) and record.show is not None:
        return float(record.show(mean))
    return mean


def correct_for_chance(value: float, iid: float, power: int) -> float:
    """Return (value - iid) / (1 - iid), 0 where an IID deal reaches 1.

    With power 2 it is the root of the same of the squares, below 0 where value < iid: what chance
    adds to a length it adds in squares.
    """
    if 1 - iid <= _ROOM:
        return 0.0
    if power == 1:
        gain = (value - iid) / (1 - iid)
    else:
        by_chance = iid**power
        gain = (max(value, 0.0) ** power - by_chance) / (1 - by_chance)
    # The root of the size, with the sign of the gain: of numbers below 0 there is no root.
    length = np.abs(gain) ** (1 / power)
    return float(np.sign(gain) * length)


def _estimate_interval(
    key: MeasureKey, value: float, table: PartyCounts, evidence: _Evidence
) -> tuple[float, float]:
    """Return the 95 % interval of a corrected value.

    It holds two intervals: the bootstrap's, which says how far the sample may be off, and that of
    the possible truths, which lie elsewhere where rare classes went unseen.

    value: scaled and less its bias, as the values of the deals that it is compared with.
    """
    dealt = evidence.dealt.less_bias[key]
    iid = float(dealt.mean())
    if 1 - iid <= _ROOM:
        return 0.0, 0.0
    power = load_measures(MeasureRecord)[key.name].power
    first, last = find_ends(evidence.spread[key])
    # Turned about the value: where replicates lie above it, the truth may lie as far below.
    down, up = max(last, 0.0), max(-first, 0.0)
    # Errors of sampled pairs and of the deals are independent of these, so they add in quadrature;
    # that of the IID value has the weight that it has in the correction.
    pair_error = 0.0
    if key in evidence.pairs.errors:
        pair_error = scale_mean(key, evidence.pairs.errors[key], table.g, table.w)
    deal_error = standard_error(dealt) * (1 - value) / (1 - iid)
    sampling = _NORMAL_REACH * float(np.hypot(pair_error, deal_error))
    lowest = value - float(np.hypot(down, sampling))
    highest = value + float(np.hypot(up, sampling))
    low = correct_for_chance(lowest, iid, power)
    high = min(correct_for_chance(highest, iid, power), 1.0)
    if key in evidence.truths:
        first, last = find_ends(evidence.truths[key])
        low, high = min(low, first), max(high, min(last, 1.0))
    return low, high


def find_ends(values: Floats) -> tuple[float, float]:
    """Return the 2.5 % and the 97.5 % quantile.

    Fewer than REPLICATES values have no tails to speak of: of those the quantiles of Student's
    distribution with their mean and spread.
    """
    if len(values) >= REPLICATES:
        return float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))
    from scipy.special import stdtrit

    mean = float(values.mean())
    spread = float(values.std(ddof=1))
    reach = float(stdtrit(len(values) - 1, 0.975)) * spread
    return mean - reach, mean + reach
