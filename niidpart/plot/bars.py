"""How much each party holds, and of what."""

from typing import Any

import numpy as np

from ..arithmetic.rng import Ints
from ..splits.split import FederatedSplit
from ._look import Figure, add_class_key, choose_colours
from ._parties import Order, choose_parties, label_parties, order_parties

__all__ = ["bars"]

_MARGIN = 2.0  # inches beside the bars: numbers, names of the classes


def bars(
    split: FederatedSplit,
    figure: Figure,
    parties: Ints | None,
    *,
    order: Order = "auto",
    share: bool = False,
) -> str:
    """A bar for each party, as high as its training examples, stacked by class.

    share: all bars of height 1. Too many parties for a bar each are shown as some of them, largest first.
    """
    from matplotlib.ticker import FuncFormatter

    width = figure.get_figwidth() - _MARGIN
    ids, said = choose_parties(split, parties, int(14 * width))
    if order == "auto" and said and parties is None:
        order = "size"  # they were taken evenly by size: let that show
    ids, axis = order_parties(split, ids, order, labelled=int(14 * width))
    counts = split.train.counts[ids].astype(float)  # [S, K]
    if share:
        counts /= np.maximum(counts.sum(1, keepdims=True), 1)
    many = len(ids) > 14 * width
    inches = figure.get_figheight()
    ax = figure.add_subplot()
    _stack(ax, counts, many)
    ax.set_xlim(-0.6, len(ids) - 0.4)
    ax.set_ylim(0, 1.02 * max(counts.sum(1).max(), 1e-9))
    label_parties(ax, ids, axis, width)
    ax.set_ylabel("share of training examples" if share else "training examples")
    if not share:
        ax.yaxis.set_major_formatter(
            FuncFormatter(lambda v, _: f"{v:,.0f}" if v == int(v) else f"{v:g}")
        )
    add_class_key(ax, split.source.class_names, inches - 0.6)
    return said


def _stack(ax: Any, counts: Any, many: bool) -> None:
    """counts [S, K] as K layers; one path a class, whatever the number of parties. many: no gaps, and drawn in pixels."""
    n_shown, n_classes = counts.shape
    half = 0.5 if many else 0.4
    edges = (np.arange(n_shown)[:, None] + [-half, half]).reshape(-1)  # [2S]
    gap = np.full(n_shown, np.nan)
    top = np.cumsum(counts, 1)
    fine = (
        many or n_classes > 30 or counts.size > 3000
    )  # white edges would hide what is between them
    thin = (
        {"rasterized": True, "antialiased": False, "linewidth": 0}
        if fine
        else {"edgecolor": "white", "linewidth": 0.3}
    )
    for k, colour in enumerate(choose_colours(n_classes)):
        upper, lower = (
            np.stack([v, gap], 1).reshape(-1)[:-1] for v in (top[:, k], top[:, k] - counts[:, k])
        )
        ax.stairs(upper, edges, baseline=lower, fill=True, facecolor=colour, **thin)
