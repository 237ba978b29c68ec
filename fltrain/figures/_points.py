"""Points of series: means of trials with intervals, moved aside so that none hides another."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
    step = min(_APART, _WIDEST / max(len(labels), 1))
    first = -step * (len(labels) - 1) / 2
    return {
        style.label: PointStyle(
            label=style.label,
            colour=style.colour,
            dash=style.dash,
            mark=choose_mark(place),
            aside=first + place * step,
        )
        for place, style in enumerate(choose_styles(labels, {}))
    }


def draw_points(
    ax: "Axes",
    points: Sequence[tuple[float, TableEntry]],
    measure: RunMeasure,
    style: PointStyle,
) -> None:
    """Draw the means of some entries with their intervals, and a line through them.

    Of an entry without a mean its values are dots; a cross stands for what it lacks.
    """
    scale = 100 if measure.is_share else 1
    move = _move(ax, style.aside)
    x, y, low, high = [], [], [], []
    for place, entry in points:
        summary = entry.values[measure.title]
        if entry.count_lost(measure):
            _draw_lost(ax, place, entry, measure, style)
        if summary.mean is None:
            continue
        x.append(place)
        y.append(scale * summary.mean)
        interval = summary.interval
        low.append(scale * (summary.mean - interval.low) if interval else 0.0)
        high.append(scale * (interval.high - summary.mean) if interval else 0.0)
    _make_room(ax, x, [value - less for value, less in zip(y, low, strict=True)])
    _make_room(ax, x, [value + more for value, more in zip(y, high, strict=True)])
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


def _draw_lost(
    ax: "Axes", place: float, entry: TableEntry, measure: RunMeasure, style: PointStyle
) -> None:
    """Draw a cross on the lower edge, and a dot for each run that has a value."""
    from matplotlib.transforms import blended_transform_factory

    scale = 100 if measure.is_share else 1
    values = [scale * value for value in list_values(entry, measure)]
    move = _move(ax, style.aside)
    _make_room(ax, [place] * len(values), values)
    ax.plot(
        [place] * len(values),
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


def _make_room(ax: "Axes", x: Sequence[float], y: Sequence[float]) -> None:
    """Let the panel reach to some points: matplotlib does not look at those that are moved."""
    if x:
        ax.update_datalim(list(zip(x, y, strict=True)))
        ax.autoscale_view(scalex=False)


def list_values(entry: TableEntry, measure: RunMeasure) -> list[float]:
    """Return the values of the runs that are done and have one."""
    known = read_values(entry.records, measure, None)
    return [value for value in known if value is not None]


def _move(ax: "Axes", points: float) -> Any:
    """Return the transform of the data, moved to the right."""
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    return ax.transData + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)
