"""Who holds how much of which class, as areas."""

from typing import Annotated, Any

import numpy as np

from ..arithmetic.rng import Ints
from ..splits.new_parties import list_new_parties
from ..splits.split import FederatedSplit
from ._look import (
    OKABE_ITO,
    Figure,
    add_legend,
    fit_row_inches,
    join_words,
    label_classes,
    smallest_font,
)
from ._media import (
    choose_grey,
)
from ._parties import ORDER_HELP, Order, choose_parties, label_parties, order_parties

__all__ = ["bubbles"]

_MARGIN = 2.0  # inches beside the bubbles: class names, legend


def bubbles(
    split: FederatedSplit,
    figure: Figure,
    parties: Ints | None,
    *,
    order: Annotated[Order, ORDER_HELP] = "auto",
) -> str:
    """A bubble for each class at each party: its area is the number of training examples."""
    width = figure.get_figwidth() - _MARGIN
    ids, said = choose_parties(split, parties, max(int(4 * width), 12))
    ids, axis = order_parties(split, ids, order, labelled=int(8 * width))
    counts = split.train.counts[ids]  # [S, K]
    n_shown, n_classes = counts.shape
    inches = fit_row_inches(figure, n_classes, each=0.28)
    figure.set_figheight(inches + 0.6)
    ax = figure.add_subplot()
    top = max(int(counts.max()), 1)
    diameter = 0.95 * min(width / n_shown, inches / n_classes, 0.6)  # neighbours do not touch
    largest = (72 * diameter) ** 2  # points squared
    party, label = np.nonzero(counts)
    many = len(party) > 2000
    style: dict[str, Any] = {"color": OKABE_ITO[0], "linewidth": 0}
    is_new = np.isin(ids, list_new_parties(split))
    colours = np.where(is_new[party], OKABE_ITO[1], OKABE_ITO[0])
    areas = largest * counts[party, label] / top
    ax.scatter(party, label, s=areas, rasterized=many, **style | {"color": colours})
    ax.set_xlim(-0.6, n_shown - 0.4)
    ax.set_ylim(n_classes - 0.4, -0.6)
    ax.grid(color=choose_grey(0.92), linewidth=0.5)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    label_parties(ax, ids, axis, width)
    label_classes(ax.yaxis, split.source.class_names, inches)
    ax.set_ylabel("class")
    sizes = sorted({top, round_down(top / 4), round_down(top / 16)})
    handles = [ax.scatter([], [], s=largest * n / top, **style) for n in sizes]
    add_legend(
        ax,
        handles,
        [f"{n:,}" for n in sizes],
        title="training\nexamples",
        title_fontsize=smallest_font() + 1,
        labelspacing=1.0,
    )
    return join_words(said, "new parties, which never train, in orange" if is_new.any() else "")


def round_down(value: float) -> int:
    """Return the largest of 1, 2, 5, 10, 20, ... that is not above `value`; 1 if there is none."""
    digit = 10 ** max(int(np.log10(max(value, 1))), 0)
    return next((m * digit for m in (5, 2, 1) if m * digit <= value), 1)
