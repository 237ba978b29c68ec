"""Who holds how much of which class."""

from typing import TYPE_CHECKING

from ..split import FederatedSplit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["heatmap"]


def heatmap(split: FederatedSplit, ax: "Axes") -> "Axes":
    """Training examples of each class (row) at each party (column), as in Li et al., ICDE 2022, Figure 4.

    Colour grows with the square root, so that small holdings show beside large ones; numbers where they fit.
    """
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    counts = split.train.counts.T  # [K, P]
    n_classes, n_parties = counts.shape
    image = ax.imshow(counts, cmap="cividis", norm=PowerNorm(0.5, vmin=0, vmax=max(int(counts.max()), 1)), aspect="auto", interpolation="nearest")
    if n_parties <= 20 and n_classes <= 20:
        for k in range(n_classes):
            for p in range(n_parties):
                bright = counts[k, p] > 0.3 * counts.max()
                ax.text(p, k, str(counts[k, p]), ha="center", va="center", fontsize=6, color="black" if bright else "white")
    ax.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
    names = split.source.class_names
    if n_classes <= 30:
        ax.set_yticks(range(n_classes), names, parse_math=False)
    ax.set_xlabel("party")
    ax.set_ylabel("class")
    bar = ax.figure.colorbar(image, ax=ax, pad=0.01)
    bar.set_label("training examples")
    return ax
