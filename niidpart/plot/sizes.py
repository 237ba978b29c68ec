"""Quantity skew: how unequal the parties are in size."""

import numpy as np

from ..arithmetic.rng import Ints
from ..heterogeneity.measures.quantity_gini import quantity_gini
from ..splits.split import FederatedSplit
from ._look import OKABE_ITO, PAPER, Figure, smallest_font
from ._parties import choose_parties

__all__ = ["sizes"]


def sizes(split: FederatedSplit, figure: Figure, parties: Ints | None) -> str:
    """Training examples of the parties, largest first, and the Lorenz curve of the same with Gini's coefficient."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ids, said = choose_parties(split, parties, split.n_parties)
    size = np.sort(split.train.sizes[ids])  # [S] ascending
    n = len(size)
    figure.set_figheight(0.42 * figure.get_figwidth())
    left, right = figure.subplots(1, 2, width_ratios=[1.6, 1])
    at = np.unique(
        np.linspace(0, n, min(n, 2000) + 1).round().astype(np.int64)
    )  # a step for each party, or every few of very many
    left.stairs(size[::-1][at[:-1]], at, fill=True, color=OKABE_ITO[0])
    left.axhline(size.mean(), color="black", linewidth=0.8, linestyle="--")
    mean = f"mean {size.mean():,.0f}"
    left.annotate(
        mean,
        (n, size.mean()),
        (-2, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=smallest_font(),
        bbox=PAPER,
    )
    left.set_xlim(0, n)
    left.set_ylim(bottom=0)
    left.set_xlabel("parties, largest first")
    left.set_ylabel("training examples")
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True))
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    held = np.concatenate([[0.0], np.cumsum(size) / max(size.sum(), 1)])[
        np.concatenate([[0], at[1:]])
    ]
    right.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle="--")
    right.plot(at / n, held, color=OKABE_ITO[0])
    right.fill_between(at / n, held, at / n, color=OKABE_ITO[0], alpha=0.15, linewidth=0)
    right.set_xlim(0, 1)
    right.set_ylim(0, 1)
    right.set_aspect("equal")
    right.set_xlabel("share of parties")
    right.set_ylabel("share of examples")
    right.text(0.05, 0.93, f"Gini {quantity_gini(size):.3f}", transform=right.transAxes, va="top")
    return said
