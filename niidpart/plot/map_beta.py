"""How well beta can be estimated from what parties hold."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import heterogeneity
from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..splits.split import FederatedSplit
from ._beta import find_label_beta
from ._look import OKABE_ITO, PAPER, TRUTH, Figure, format_count, label_log_axis, smallest_font
from ._parties import choose_parties

__all__ = ["map_beta"]

_BINS, _POINTS = 6, 2000
_LEAST = 1e-6  # the estimator's own lower end


def map_beta(
    split: FederatedSplit,
    figure: Figure,
    parties: Ints | None,
    *,
    likelihood: Literal["multinomial", "proportions"] = "multinomial",
) -> str:
    """The MAP estimate of beta at each party, by its size, and the recipe's beta. Cha and Chang, Information 2025, Figure 6.

    A dot for each party; marks with bars are the median and the middle half of parties of about one size (where all have one: of parties
    beside each other). likelihood: as `niidpart.heterogeneity.map_beta`.
    """
    ids, said = choose_parties(split, parties, split.n_parties)
    size = split.train.sizes[ids]
    ids, empty = ids[size > 0], int((size == 0).sum())
    if not len(ids):
        raise UsageError(
            "these parties hold no training examples; there is nothing to estimate beta from"
        )
    size = split.train.sizes[ids]
    beta = heterogeneity.map_beta(split.train.counts[ids], likelihood=likelihood)  # [S]
    truth = find_label_beta(split)
    figure.set_figheight(0.5 * figure.get_figwidth())
    ax, side = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1])
    points = (
        np.arange(len(ids))
        if len(ids) <= _POINTS
        else np.linspace(0, len(ids) - 1, _POINTS).round().astype(np.int64)
    )
    alike = int(size.max()) <= 1.2 * int(size.min())
    across = np.arange(len(ids)) if alike else size
    dots = {
        "s": 20 if len(ids) <= 100 else 8,
        "alpha": 0.6,
        "linewidth": 0,
        "rasterized": len(points) > 500,
    }
    ax.scatter(across[points], beta[points], color=OKABE_ITO[4], zorder=1, **dots)
    _summaries(ax, across, beta)
    _limits(ax, across, beta, truth)
    _histogram(side, beta, ax.get_ylim())
    _truth(ax, side, beta, truth)
    ax.set_xlabel(
        f"parties in order, each of about {np.median(size):,.0f} training examples"
        if alike
        else "training examples of the party"
    )
    ax.set_ylabel("MAP estimate of beta")
    side.set_xlabel("parties")
    words = [said, f"likelihood {likelihood}", f"median {np.median(beta):.3g}"]
    words += [f"dots: {len(points):,} of {len(ids):,} parties"] if len(points) < len(ids) else []
    words += [f"{format_count(empty, 'party')} without examples left out"] if empty else []
    words += (
        [f"{format_count(int((beta < 1.01 * _LEAST).sum()), 'party')} at the lower end {_LEAST:g}"]
        if (beta < 1.01 * _LEAST).any()
        else []
    )
    return "; ".join(w for w in words if w)


def groups_by_size(size: Ints) -> list[Ints]:
    """Positions of parties in up to six groups of about one size and at least five parties; none where they are fewer."""
    order = np.argsort(size, kind="stable")
    n = min(_BINS, len(size) // 5)
    return list(np.array_split(order, n)) if n else []


def _summaries(ax: Any, size: Ints, beta: NDArray[np.float64]) -> None:
    for group in groups_by_size(size):
        low, middle, high = np.quantile(beta[group], [0.25, 0.5, 0.75])
        where = np.median(size[group])
        ax.plot([where, where], [low, high], color="black", linewidth=1.2, zorder=3)
        ax.plot(where, middle, "o", color="black", markersize=4, zorder=3)


def _limits(ax: Any, size: Ints, beta: NDArray[np.float64], truth: float | None) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ends = np.array([*beta, *([truth] if truth else [])])
    ax.set_yscale("log")
    ax.set_ylim(ends.min() / 1.6, ends.max() * 1.6)
    label_log_axis(ax.yaxis)
    if size.min() > 0 and size.max() > 20 * size.min():
        ax.set_xscale("log")
        label_log_axis(ax.xaxis)
    else:
        ax.set_xlim(-0.02 * size.max() - 0.5 * (size.min() == 0), 1.03 * size.max() + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 0 else ""))


def _histogram(side: Any, beta: NDArray[np.float64], ends: tuple[float, float]) -> None:
    side.hist(beta, bins=np.geomspace(*ends, 25), orientation="horizontal", color=OKABE_ITO[4])
    side.tick_params(axis="y", labelleft=False)
    side.xaxis.get_major_locator().set_params(integer=True, nbins=4)


def _truth(ax: Any, side: Any, beta: NDArray[np.float64], truth: float | None) -> None:
    median = float(np.median(beta))
    side.axhline(median, color="black", linewidth=1)
    side.annotate(
        "median",
        (0.98, median),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=smallest_font(),
        bbox=PAPER,
    )
    if truth:
        for panel in (ax, side):
            panel.axhline(truth, color=TRUTH, linewidth=1.2, zorder=2)
        words = f"the recipe's beta, {truth:g}"
        ax.annotate(
            words,
            (0.01, truth),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            color=TRUTH,
            va="bottom",
            bbox=PAPER,
            zorder=4,
        )
