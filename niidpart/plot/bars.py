"""How much each party holds, and of what."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..splits.split import FederatedSplit
from ._look import (
    Figure,
    add_class_key,
    choose_colours,
)
from ._media import (
    choose_paper,
)
from ._parties import ORDER_HELP, Order, choose_parties, label_parties, order_parties

__all__ = ["bars"]

_MARGIN = 2.0  # inches beside the bars: numbers, names of the classes
_SPACED, _MOST = 14, 70  # bars an inch that have gaps, and that can be told apart


def bars(
    split: FederatedSplit,
    figure: Figure,
    parties: Ints | None,
    *,
    order: Annotated[Order, ORDER_HELP] = "auto",
    share: Annotated[bool, "All bars of height 1."] = False,
) -> str:
    """A bar for each party, as high as its training examples, stacked by class.

    Too many parties for a bar each are shown as some of them, largest first.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    width = figure.get_figwidth() - _MARGIN
    limit = int(_MOST * width)
    ids, said = choose_parties(split, parties, limit)
    if order == "auto" and said and parties is None:
        order = "size"  # they were taken evenly by size: let that show
    ids, axis = order_parties(split, ids, order, labelled=limit)
    counts = split.train.counts[ids].astype(float)  # [S, K]
    if share:
        counts /= np.maximum(counts.sum(1, keepdims=True), 1)
    inches = figure.get_figheight()
    ax = figure.add_subplot()
    _stack(ax, counts, is_dense=len(ids) > _SPACED * width)
    ax.set_xlim(-0.6, len(ids) - 0.4)
    ax.set_ylim(0, 1.02 * max(counts.sum(1).max(), 1e-9))
    label_parties(ax, ids, axis, width)
    ax.set_ylabel("share of training examples" if share else "training examples")
    if not share:
        ax.yaxis.set_major_locator(MaxNLocator(9, integer=True))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    add_class_key(ax, split.source.class_names, inches - 0.6)
    return said


def _stack(ax: Any, counts: NDArray[np.float64], is_dense: bool) -> None:
    """Draw counts [S, K] as K layers; one path a class, whatever the number of parties.

    is_dense: no gaps, and drawn in pixels.
    """
    from matplotlib.patches import StepPatch

    n_shown, n_classes = counts.shape
    half = 0.5 if is_dense else 0.4
    edges = (np.arange(n_shown)[:, None] + [-half, half]).reshape(-1)  # [2S]
    gap = np.full(n_shown, np.nan)
    top = np.cumsum(counts, 1)
    style: dict[str, Any] = {"edgecolor": choose_paper(), "linewidth": 0.3}
    if is_dense or n_classes > 30 or counts.size > 3000:
        # white edges would hide what is between them
        style = {"rasterized": True, "antialiased": False, "linewidth": 0}
    for k, colour in enumerate(choose_colours(n_classes)):
        upper = np.stack([top[:, k], gap], 1).reshape(-1)[:-1]
        lower = np.stack([top[:, k] - counts[:, k], gap], 1).reshape(-1)[:-1]
        # not by ax.stairs, which looks for limits at every corner: seconds for a thousand parties
        style |= {"baseline": lower, "facecolor": colour}
        ax.add_artist(StepPatch(upper, edges, **style))
