"""Mean ranks over splits, and which of them so many splits do not tell apart."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from niidpart.errors import UsageError
from niidpart.plot import choose_ink, measure_text, wrap_text
from niidpart.registry import Above, Below

from ..evidence.column_ranking import rank_columns
from ..evidence.comparing import LEVEL
from ..evidence.ranking import Ranking
from ._key import add_key
from ._look import choose_shade, find_small
from ._runs import FigureRuns
from ._text import FigureText

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Figure = Any  # the registry resolves annotations where matplotlib may be missing

__all__ = ["ranks"]

_LABEL = 0.32  # of the width, which names on one side take at most
_MARGIN = 0.12  # inches at both sides
_LINE = 1.75  # of the letters' size, from name to name
_TICK = 0.05  # inches


def ranks(
    runs: FigureRuns,
    figure: Figure,
    *,
    show: Annotated[str, "What rows are ranked by: last, best, worst, ..."] = "last",
    level: Annotated[
        float, "How often ranks may be told apart where nothing differs.", Above(0), Below(1)
    ] = LEVEL,
) -> FigureText:
    """Critical-difference diagram: mean ranks over splits, the best on the left.

    Friedman's test by permutations within splits, Nemenyi's critical difference (Demsar, JMLR
    2006). A bar joins rows that differ by less. A split is one block, of the mean of its trials;
    where rows lack runs, or columns share splits, there are no ranks.
    """
    measure = runs.find_measure(show)
    arranged = runs.arrange(measure)
    if len(arranged.body.columns) < 2:
        raise UsageError(
            "a critical-difference diagram ranks over splits, and these runs have no axis that "
            "tells several; give --panels split, or a study on more of them"
        )
    ranking, why_not = rank_columns(arranged.body, measure, level)
    if ranking is None:
        raise UsageError(f"there is no critical-difference diagram: {why_not}")
    _draw_diagram(figure, ranking)
    caption = _describe(ranking, level)
    add_key(figure, said=caption)
    notes = [*runs.notes, *arranged.faults]
    if ranking.why_no_claim:
        notes.append(ranking.why_no_claim)
    return FigureText(caption, arranged.name_runs(), notes)


def _describe(ranking: Ranking, level: float) -> str:
    """Return what was tested, and with what result."""
    told = "" if ranking.p <= level else ", which chance alone may give"
    if ranking.why_no_claim:
        told = f"; {ranking.why_no_claim}"
    return (
        f"mean ranks over {ranking.n_blocks} splits, 1 the best; Friedman p = {ranking.p:.2g}"
        f"{told}; CD: critical difference at {level:g}; bars join what is not told apart"
    )


def _draw_diagram(figure: "Figure", ranking: Ranking) -> None:
    """Draw in inches: the scale between the names, which stand on both sides."""
    names = list(ranking.mean_ranks)
    small = find_small()
    n = len(names)
    half = (n + 1) // 2
    left = names[:half]
    right = names[half:]
    right.reverse()
    step = _LINE * small / 72
    n_bars = len(ranking.alike)
    bars = 0.4 * step * (n_bars + 1)
    head = 3.6 * step
    height = head + bars + step * (half + 0.3)
    ax = _lay_diagram(figure, height)
    width = figure.get_figwidth()
    at_left = _MARGIN + _measure_widest(left, width, small)
    at_right = width - _MARGIN - _measure_widest(right, width, small)
    rank_room = measure_text("0.00", small) + 0.1  # beside the scale, so that no line crosses it
    scale = _RankScale(
        n,
        left=at_left + rank_room,
        right=at_right - rank_room,
        y=height - head + 0.9 * step,
    )
    _draw_scale(ax, scale, small)
    _draw_critical(ax, scale, ranking.critical_difference, step, small)
    _draw_bars(ax, scale, ranking, step)
    below = scale.y - bars
    for place, name in enumerate(left):
        y = below - step * (place + 0.9)
        rank = ranking.mean_ranks[name]
        _draw_name(ax, scale, (name, rank), (at_left, y), small)
    for place, name in enumerate(right):
        y = below - step * (place + 0.65)  # beside those on the left, which may be ties
        rank = ranking.mean_ranks[name]
        _draw_name(ax, scale, (name, rank), (at_right, y), small)


def _lay_diagram(figure: "Figure", height: float) -> "Axes":
    """Return axes in inches over all of the figure, which gets its height."""
    figure.set_figheight(height)
    ax = figure.add_subplot()
    width = figure.get_figwidth()
    ax.set(
        xlim=(0, width),
        ylim=(0, height),
        xticks=[],
        yticks=[],
    )
    ax.set_axis_off()
    return ax


class _RankScale:
    """Where ranks lie: from the first at `left` to the last at `right`, all at the height `y`."""

    def __init__(self, n: int, left: float, right: float, y: float):
        self.n = n
        self.left = left
        self.right = right
        self.y = y

    def find(self, rank: float) -> float:
        share = (rank - 1) / (self.n - 1)
        return self.left + share * (self.right - self.left)


def _measure_widest(names: Sequence[str], width: float, size: float) -> float:
    """Return how wide the widest name is; each is cut where it is too long."""
    room = _LABEL * width
    widest = 0.0
    for name in names:
        (shown,) = wrap_text(name, room, size, 1)
        widest = max(widest, measure_text(shown, size))
    return widest


def _draw_scale(ax: "Axes", scale: _RankScale, small: float) -> None:
    y = scale.y
    ink = choose_ink()
    ax.plot([scale.left, scale.right], [y, y], color=ink, linewidth=0.8)
    between = (scale.right - scale.left) / (scale.n - 1)
    two_digits = 2.2 * 0.6 * small / 72  # and a gap, in inches
    step = math.ceil(two_digits / between)
    for rank in range(1, scale.n + 1, step):
        x = scale.find(rank)
        ax.plot([x, x], [y, y + _TICK], color=ink, linewidth=0.8)
        ax.text(
            x,
            y + 1.4 * _TICK,
            f"{rank}",
            ha="center",
            va="bottom",
            fontsize=small,
        )


def _draw_critical(
    ax: "Axes", scale: _RankScale, critical: float, step: float, small: float
) -> None:
    """Draw how long the critical difference is; an arrow where it is longer than the scale."""
    y = scale.y + 1.55 * step
    ink = choose_ink()
    is_longer = critical > scale.n - 1
    end = scale.right if is_longer else scale.find(1 + critical)
    mark = ">" if is_longer else "|"
    ax.plot([scale.left, end], [y, y], color=ink, linewidth=0.8)
    ax.plot([scale.left], [y], marker="|", markersize=6, color=ink)
    ax.plot([end], [y], marker=mark, markersize=6, color=ink)
    middle = (scale.left + end) / 2
    ax.text(
        middle,
        y + 0.04,
        f"CD = {critical:.2f}",
        ha="center",
        va="bottom",
        fontsize=small,
    )


def _draw_bars(ax: "Axes", scale: _RankScale, ranking: Ranking, step: float) -> None:
    """Draw a bar for each group that is not told apart."""
    for place, group in enumerate(ranking.alike):
        first = ranking.mean_ranks[group[0]]
        last = ranking.mean_ranks[group[-1]]
        left = scale.find(first) - 0.03
        right = scale.find(last) + 0.03
        y = scale.y - 0.4 * step * (place + 1)
        ax.plot(
            [left, right],
            [y, y],
            color=choose_shade(0.25),
            linewidth=3,
            solid_capstyle="butt",
            label=f"_alike: {', '.join(group)}",
        )


def _draw_name(
    ax: "Axes",
    scale: _RankScale,
    named: tuple[str, float],
    end: tuple[float, float],
    small: float,
) -> None:
    """Draw a line from a rank down to its name, which stands at the end."""
    name, rank = named
    at, y = end
    x = scale.find(rank)
    grey = choose_shade(0.35)
    ax.plot(
        [x, x, at],
        [scale.y, y, y],
        color=grey,
        linewidth=0.7,
        label=f"_{name}",
    )
    is_left = at < x
    outwards = -1 if is_left else 1
    sides = ("right", "left") if is_left else ("left", "right")
    _, width = ax.get_xlim()
    (shown,) = wrap_text(name, _LABEL * width, small, 1)
    ax.text(
        at + 0.04 * outwards,
        y,
        shown,
        ha=sides[0],
        va="center",
        fontsize=small,
    )
    ax.text(
        at - 0.03 * outwards,
        y + 0.01,
        f"{rank:.2f}",
        ha=sides[1],
        va="bottom",
        fontsize=small,
        color=grey,
        bbox={"facecolor": choose_shade(1.0), "edgecolor": "none", "pad": 0.3},
    )
