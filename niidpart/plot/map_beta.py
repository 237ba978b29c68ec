"""How well beta can be estimated from what parties hold."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from .. import heterogeneity
from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..heterogeneity.roots import LOWEST
from ..heterogeneity.skew import choose_likelihood
from ..heterogeneity.terms import BetaLikelihood
from ..splitfile.stated_skew import find_stored_skew
from ..splits.dealing import find_reading
from ..splits.split import FederatedSplit
from ..wording import count_noun
from ._beta import find_label_beta
from ._look import (
    OKABE_ITO,
    TRUTH,
    Figure,
    choose_evenly,
    join_words,
    label_log_axis,
    smallest_font,
)
from ._media import (
    choose_backing,
    choose_ink,
)
from ._parties import choose_parties

__all__ = ["map_beta"]

_BINS, _POINTS = 6, 2000  # groups of parties that are summed up, and dots, at most
_LEAST_IN_BIN = 5  # parties: quartiles of less say nothing
_ALIKE = 1.2  # the largest size over the smallest
_ROOM = 1.6  # times, on the axis of beta: about a fifth of a power of ten
_FEW = 100  # parties, whose dots may be large
_VECTORS = 500  # dots that a PDF holds as vectors; of more it would be large and slow


def map_beta(
    split: FederatedSplit,
    figure: Figure,
    parties: Ints | None,
    *,
    likelihood: Annotated[
        BetaLikelihood | None,
        "Of a sample (multinomial), of rounded or of smoothed proportions (docs/heterogeneity.md); "
        "else as the recipe deals.",
    ] = None,
) -> str:
    """The MAP estimate of beta at each party, by its size, and the recipe's beta.

    Cha and Chang, Information 2025, Figure 6.

    A dot for each party; marks with bars are the median and the middle half of parties of about one
    size (where all have one: of parties beside each other).
    """
    ids, said = choose_parties(split, parties, split.n_parties)
    is_empty = split.train.sizes[ids] == 0
    ids = ids[~is_empty]
    if not len(ids):
        why = "there is nothing to estimate beta from"
        raise UsageError(f"these parties hold no training examples; {why}")
    size = split.train.sizes[ids]
    stored = find_stored_betas(split, likelihood)
    if likelihood is None:
        likelihood = choose_likelihood(find_reading(split.recipe))
    if stored is None:
        beta = heterogeneity.map_beta(split.train.counts[ids], likelihood=likelihood)  # [S]
    else:
        beta = stored[ids]
    points = choose_evenly(len(ids), _POINTS)
    _draw_betas(figure, size, beta, points, find_label_beta(split))
    words = [said, f"likelihood {likelihood}", f"median {np.median(beta):.3g}"]
    if len(points) < len(ids):
        words.append(f"dots: {len(points):,} of {len(ids):,} parties")
    words.append(_say_parties(is_empty, "without examples left out"))
    is_lowest = beta < 1.01 * LOWEST  # a root is found to some digits only
    words.append(_say_parties(is_lowest, f"at the lower end {LOWEST:g}"))
    return join_words(*words)


def find_stored_betas(split: FederatedSplit, likelihood: BetaLikelihood | None) -> Floats | None:
    """Return [P] those that the split's file states, where it is believed; else None.

    likelihood: that is asked for, None for that of the recipe, which the file's are of.
    """
    if likelihood not in (None, choose_likelihood(find_reading(split.recipe))):
        return None
    stored = find_stored_skew(split)
    return None if stored is None else stored.map_beta


def _say_parties(which: NDArray[np.bool_], what: str) -> str:
    n = int(which.sum())
    if not n:
        return ""
    return f"{count_noun(n, 'party')} {what}"


def _draw_betas(
    figure: Figure,
    size: Ints,
    beta: NDArray[np.float64],
    points: Ints,
    truth: float | None,
) -> None:
    """points: the parties that get a dot."""
    figure.set_figheight(0.5 * figure.get_figwidth())
    ax, side = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1])
    # Of about equal sizes an axis would say nothing: then the parties stand in their order.
    is_alike = int(size.max()) <= _ALIKE * int(size.min())
    if is_alike:
        across = np.arange(len(size))
        each = f"parties in order, each of about {np.median(size):,.0f} training examples"
    else:
        across = size
        each = "training examples of the party"
    ax.scatter(
        across[points],
        beta[points],
        color=OKABE_ITO[4],
        zorder=1,
        s=20 if len(size) <= _FEW else 8,
        alpha=0.6,
        linewidth=0,
        rasterized=len(points) > _VECTORS,
    )
    _draw_summaries(ax, across, beta)
    _set_limits(ax, across, beta, truth)
    _draw_histogram(side, beta, ax.get_ylim())
    _draw_truth(ax, side, beta, truth)
    _draw_key(figure, has_groups=bool(groups_by_size(size)))
    ax.set_xlabel(each)
    ax.set_ylabel("MAP estimate of beta")
    side.set_xlabel("parties")


def groups_by_size(size: Ints) -> list[Ints]:
    """Return positions of parties in up to six groups of about one size.

    Each of at least five parties; none where they are fewer.
    """
    order = np.argsort(size, kind="stable")
    n_groups = min(_BINS, len(size) // _LEAST_IN_BIN)
    if not n_groups:
        return []
    return list(np.array_split(order, n_groups))


def _draw_summaries(ax: Any, size: Ints, beta: NDArray[np.float64]) -> None:
    for group in groups_by_size(size):
        low, middle, high = np.quantile(beta[group], [0.25, 0.5, 0.75])
        where = np.median(size[group])
        ax.plot([where, where], [low, high], color=choose_ink(), linewidth=1.2, zorder=3)
        ax.plot(where, middle, "o", color=choose_ink(), markersize=4, zorder=3)


def _draw_key(figure: Figure, has_groups: bool) -> None:
    """Say below the picture what a dot is, and what a mark with a bar."""
    from matplotlib.lines import Line2D

    dot = Line2D([], [], linestyle="", marker="o", color=OKABE_ITO[4], alpha=0.6, markersize=5)
    handles, labels = [dot], ["a party"]
    if has_groups:
        ink = choose_ink()
        handles.append(Line2D([], [], linewidth=1.2, marker="o", color=ink, markersize=4))
        labels.append("median and middle half of parties of about one size")
    figure.legend(handles, labels, loc="outside lower left", ncols=2, frameon=False)


def _set_limits(ax: Any, size: Ints, beta: NDArray[np.float64], truth: float | None) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = beta.min(), beta.max()
    if truth:
        low, high = min(low, truth), max(high, truth)
    ax.set_yscale("log")
    ax.set_ylim(low / _ROOM, high * _ROOM)
    label_log_axis(ax.yaxis)
    least, most = size.min(), size.max()
    if least > 0 and most > 20 * least:
        ax.set_xscale("log")
        label_log_axis(ax.xaxis)
    else:
        left = -0.02 * most
        if least == 0:  # half a dot
            left -= 0.5
        ax.set_xlim(left, 1.03 * most + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        ax.xaxis.set_major_formatter(FuncFormatter(_format_number))


def _format_number(value: float, _position: int | None) -> str:
    if value < 0:  # in the margin there are no parties
        return ""
    return f"{value:,.0f}"


def _draw_histogram(side: Any, beta: NDArray[np.float64], ends: tuple[float, float]) -> None:
    bins = np.geomspace(*ends, 25)  # of one height on the logarithmic axis
    side.hist(beta, bins=bins, orientation="horizontal", color=OKABE_ITO[4])
    side.tick_params(axis="y", labelleft=False)
    side.xaxis.get_major_locator().set_params(integer=True, nbins=4)


def _draw_truth(ax: Any, side: Any, beta: NDArray[np.float64], truth: float | None) -> None:
    median = float(np.median(beta))
    side.axhline(median, color=choose_ink(), linewidth=1)
    side.annotate(
        "median",
        (0.98, median),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=smallest_font(),
        bbox=choose_backing(),
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
            bbox=choose_backing(),
            zorder=4,
        )
