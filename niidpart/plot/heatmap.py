"""Who holds how much of which class."""

from ..arithmetic.rng import Ints
from ..splits.split import FederatedSplit
from ._look import Figure, class_labels, row_inches, small, text_width
from ._parties import Order, chosen, ordered, party_ticks

__all__ = ["heatmap"]

_MARGIN = 1.9  # inches beside the cells: class names, colour bar


def heatmap(
    split: FederatedSplit, figure: Figure, parties: Ints | None, *, order: Order = "auto"
) -> str:
    """Training examples of each class (row) at each party (column). Li et al., ICDE 2022, Figure 4.

    Colour grows with the square root, so that small holdings show beside large ones; numbers where they fit.
    """
    from matplotlib.colors import PowerNorm

    width = figure.get_figwidth() - _MARGIN
    ids, said = chosen(split, parties, int(200 * width))
    ids, axis = ordered(split, ids, order, labelled=int(20 * width))
    counts = split.train.counts[ids].T  # [K, S]
    n_classes, n_shown = counts.shape
    inches = row_inches(figure, n_classes)
    figure.set_figheight(inches + 0.6)
    ax = figure.add_subplot()
    top = max(int(counts.max()), 1)
    image = ax.imshow(
        counts,
        cmap="cividis",
        norm=PowerNorm(0.5, vmin=0, vmax=top),
        aspect="auto",
        interpolation="nearest",
    )
    widest = text_width(str(top), small())
    if width / n_shown > 1.15 * widest and inches / n_classes > small() * 1.1 / 72:
        for k in range(n_classes):
            for p in range(n_shown):
                dark = "black" if counts[k, p] > 0.3 * top else "white"
                ax.text(
                    p, k, str(counts[k, p]), ha="center", va="center", fontsize=small(), color=dark
                )
    party_ticks(ax, ids, axis, width)
    class_labels(ax.yaxis, split.source.class_names, inches)
    ax.set_ylabel("class")
    figure.colorbar(image, ax=ax, pad=0.02, aspect=30).set_label("training examples")

    return said
