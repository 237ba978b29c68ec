"""`measure`: from the table of counts to every measure of skew, with its correction for small samples, an interval and the value of an IID deal."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, stream
from .chance import REPLICATES, deviations, of_deals
from .concentration import checked, map_beta, map_beta_overall
from .means import (
    Key,
    Table,
    bias_over_all,
    kind_of,
    loaded,
    of_kind,
    over_pairs,
    over_parties,
    scaled,
    standard_error,
)
from .measures import MEASURES
from .posterior import truths
from .skew import Measure, Skew

_ROOM = 1e-9  # of the scale: where an IID deal comes so near to 1, nothing can be told from chance


def measure(counts: NDArray[Any]) -> Skew:
    """The skew of a table of counts [P, K] of integers. The same table gives the same numbers on every machine, to about 1e-9.

    ValueError for anything but a table of counts.
    """
    counts = checked(counts)
    sizes = counts.sum(axis=1, dtype=np.int64)
    found = [*_of_labels(Table.of(counts)), *_of_sizes(sizes)] if sizes.any() else []
    return Skew(map_beta(counts), map_beta_overall(counts), tuple(found), int((sizes == 0).sum()))


def evaluate_measure(name: str, counts: NDArray[Any]) -> float:
    """Return one measure of a table of counts [P, K], uncorrected, on its scale of 0 to 1.

    Of a distance it is the one to the whole.
    """
    module = MEASURES.module(name)
    if kind_of(module) == "sizes":
        sizes = counts.sum(axis=1, dtype=np.int64)
        return float(module.scaled(MEASURES.find(name)(sizes), len(counts)))
    table = Table.of(counts)
    means = over_parties(table)
    key = next(key for key in means if key[0] == name)
    return scaled(key, means[key], table.g, table.w)


def _of_sizes(sizes: Ints) -> list[Measure]:
    """Quantity skew, over all parties, those without examples too. Nothing is sampled, so there is no interval."""
    out, P = [], len(sizes)
    for name, (module, function) in of_kind("sizes").items():
        raw = float(function(sizes))
        value, iid = (
            float(module.scaled(v, P)) for v in (raw, module.of_even(int(sizes.sum()), P))
        )
        out.append(
            Measure(
                name,
                "",
                module.VERSION,
                raw,
                value,
                corrected(value, iid, module.POWER),
                None,
                None,
                iid,
                "parties",
                P,
                False,
            )
        )
    return out


def _of_labels(table: Table) -> list[Measure]:
    """Label skew, over the parties that hold something."""
    P = len(table.sizes)
    pairs, pair_errors, n_pairs = over_pairs(table, stream(0, "heterogeneity", "pairs"))
    point = over_parties(table) | (pairs if P > 1 else {})
    bias = bias_over_all(table, stream(0, "heterogeneity", "bias"))
    spread = deviations(table, point, stream(0, "heterogeneity", "bootstrap"))
    possible = truths(table, point, stream(0, "heterogeneity", "posterior"))
    dealt = of_deals(table, stream(0, "heterogeneity", "iid"))
    out = []
    for key in _order(point):
        name, form = key
        module = loaded()[name].module
        value, less = (
            scaled(key, mean, table.g, table.w)
            for mean in (point[key], point[key] - bias.get(key, 0.0))
        )
        iid, iid_less = float(dealt.values[key].mean()), float(dealt.less_bias[key].mean())
        pair_error = scaled(key, pair_errors[key], table.g, table.w) if key in pair_errors else 0.0
        low, high = _interval(
            less,
            iid_less,
            module.POWER,
            spread[key],
            (pair_error, standard_error(dealt.less_bias[key])),
        )
        if 1 - iid_less > _ROOM:
            low, high = _wider(low, high, possible.get(key))
        raw = float(module.shown(point[key])) if hasattr(module, "shown") else point[key]
        over = (
            ("pairs, weighted by the product of their sizes", n_pairs)
            if form == "pairwise"
            else ("parties, weighted by size", P)
        )
        best = corrected(less, iid_less, module.POWER)
        out.append(
            Measure(
                name,
                form,
                module.VERSION,
                raw,
                value,
                best,
                low,
                high,
                iid,
                *over,
                form == "pairwise" and n_pairs < P * (P - 1) // 2,
            )
        )
    return out


def _order(point: dict[Key, float]) -> list[Key]:
    """To the whole first, then pairwise, then those with one form."""
    return sorted(point, key=lambda key: (["to-global", "pairwise", ""].index(key[1]), key[0]))


def corrected(value: float, iid: float, power: int) -> float:
    """(value - iid) / (1 - iid); with power 2 the root of the same of the squares, below 0 where value < iid. 0 where an IID deal reaches 1."""
    if 1 - iid <= _ROOM:
        return 0.0
    gain = (
        (value - iid) / (1 - iid)
        if power == 1
        else (max(value, 0.0) ** power - iid**power) / (1 - iid**power)
    )
    return float(np.sign(gain) * np.abs(gain) ** (1 / power))


def _interval(
    value: float, iid: float, power: int, spread: Floats, errors: tuple[float, float]
) -> tuple[float, float]:
    """95 % interval of the corrected value: the replicates' deviations, turned about the value, and the errors of sampled pairs and deals.

    These are added in quadrature, an error of the IID value with the weight that it has in the correction. Then the ends are corrected.
    """
    if 1 - iid <= _ROOM:
        return 0.0, 0.0
    first, last = ends(spread)
    down, up = max(last, 0.0), max(-first, 0.0)
    sampling = 1.96 * float(np.hypot(errors[0], errors[1] * (1 - value) / (1 - iid)))
    low, high = value - float(np.hypot(down, sampling)), value + float(np.hypot(up, sampling))
    return corrected(low, iid, power), min(corrected(high, iid, power), 1.0)


def ends(values: Floats) -> tuple[float, float]:
    """2.5 % and 97.5 % quantile; of fewer than REPLICATES values, which have no tails, those of Student's distribution with their mean and spread."""
    if len(values) >= REPLICATES:
        return float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))
    from scipy.special import stdtrit

    mean, reach = (
        float(values.mean()),
        float(stdtrit(len(values) - 1, 0.975)) * float(values.std(ddof=1)),
    )
    return mean - reach, mean + reach


def _wider(low: float, high: float, possible: Floats | None) -> tuple[float, float]:
    """The interval that holds both low .. high and 95 % of the possible truths, which lie elsewhere where rare classes went unseen."""
    if possible is None:
        return low, high
    first, last = ends(possible)
    return min(low, first), max(high, min(last, 1.0))
