"""Points of series: means of trials with intervals, moved aside so that none hides another."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..evidence.measures import RunMeasure
from ..evidence.tables import TableEntry
from ..evidence.trial_values import read_values
from ._styles import choose_mark, choose_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_APART = 2.6  # points between series
_WIDEST = 16.0  # points that the series of one place take at most
_EDGE = 0.03  # of the height of a panel, where crosses lie


class PointStyle(NamedTuple):
    """How a series is drawn. aside: by how many points it is moved to the right."""

    label: str
    colour: Any
    dash: str
    mark: str
    aside: float


def choose_point_styles(labels: Sequence[str]) -> Mapping[str, PointStyle]:
    """Return how each series is drawn: with a colour, a dash and a mark of its own."""
    n = len(labels)
    step = min(_APART, _WIDEST / max(n, 1))
    first = -step * (n - 1) / 2
    styles = {}
    for place, style in enumerate(choose_styles(labels, {})):
        styles[style.label] = PointStyle(
            label=style.label,
            colour=style.colour,
            dash=style.dash,
            mark=choose_mark(place),
            aside=first + place * step,
        )
    return styles


def draw_points(
    ax: "Axes",
    points: Sequence[tuple[float, TableEntry]],
    measure: RunMeasure,
    style: PointStyle,
) -> None:
    """Draw the means of some entries with their intervals, and a line through them.

    Of an entry without a mean its values are dots; a cross stands for what it lacks.
    """
    move = _move(ax, style.aside)
    x, y, low, high = [], [], [], []
    for place, entry in points:
        if entry.count_lost(measure):
            _draw_lost(ax, place, entry, measure, style)
        bar = _measure_bar(entry, measure)
        if bar is None:
            continue
        x.append(place)
        y.append(bar.middle)
        low.append(bar.below)
        high.append(bar.above)
    _make_room(ax, x, np.subtract(y, low))
    _make_room(ax, x, np.add(y, high))
    ax.plot(
        x,
        y,
        color=style.colour,
        linestyle=style.dash,
        marker=style.mark,
        markersize=4,
        linewidth=1.2,
        label=style.label,
        transform=move,
    )
    if any((*low, *high)):
        ax.errorbar(
            x,
            y,
            yerr=[low, high],
            fmt="none",
            ecolor=style.colour,
            elinewidth=0.8,
            capsize=1.8,
            capthick=0.8,
            transform=move,
        )


class _MeanBar(NamedTuple):
    """A mean as it is shown, and how far its interval reaches below and above."""

    middle: float
    below: float
    above: float


def _measure_bar(entry: TableEntry, measure: RunMeasure) -> _MeanBar | None:
    scale = 100 if measure.is_share else 1
    summary = entry.values[measure.title]
    mean = summary.mean
    if mean is None:
        return None
    interval = summary.interval
    if interval is None:
        return _MeanBar(scale * mean, 0.0, 0.0)
    return _MeanBar(
        middle=scale * mean,
        below=scale * (mean - interval.low),
        above=scale * (interval.high - mean),
    )


def _draw_lost(
    ax: "Axes", place: float, entry: TableEntry, measure: RunMeasure, style: PointStyle
) -> None:
    """Draw a cross on the lower edge, and a dot for each run that has a value."""
    from matplotlib.transforms import blended_transform_factory

    scale = 100 if measure.is_share else 1
    values = [scale * value for value in list_values(entry, measure)]
    places = [place] * len(values)
    move = _move(ax, style.aside)
    _make_room(ax, places, values)
    ax.plot(
        places,
        values,
        linestyle="",
        marker=style.mark,
        markersize=2.5,
        alpha=0.7,
        color=style.colour,
        transform=move,
        label="_trials",
    )
    ax.plot(
        [place],
        [_EDGE],
        linestyle="",
        marker="x",
        markersize=5,
        markeredgewidth=1.2,
        color=style.colour,
        transform=blended_transform_factory(move, ax.transAxes),
        label="_lost",
        clip_on=False,
    )


def _make_room(ax: "Axes", x: Sequence[float], y: Any) -> None:
    """Let the panel reach to some points: matplotlib does not look at those that are moved."""
    if x:
        points = list(zip(x, y, strict=True))
        ax.update_datalim(points)
        ax.autoscale_view(scalex=False)


def list_values(entry: TableEntry, measure: RunMeasure) -> list[float]:
    """Return the values of the runs that are done and have one."""
    known = read_values(entry.records, measure, None)
    return [value for value in known if value is not None]


def _move(ax: "Axes", points: float) -> Any:
    """Return the transform of the data, moved to the right."""
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    to_the_right = ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)
    return ax.transData + to_the_right
