"""Panels side by side, as many as fit, and what stands along their axes."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from niidpart.plot import wrap_text

from ..evidence.measures import RunMeasure
from ..runs.metric_names import is_percentage
from ..runs.points import Along
from ._look import choose_shade, find_small

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {
    "test_accuracy": "test accuracy",
    "train_loss": "training loss",
    "party_test_accuracy_mean": "accuracy at the parties, mean",
    "party_test_accuracy_worst": "accuracy at the parties, worst",
    "personal_test_accuracy": "test accuracy of personal models",
    "personal_party_test_accuracy_mean": "accuracy of personal models at home, mean",
}
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_LETTERS = 18  # widths of a letter that a panel has at least
_LEAST_HEIGHT = 1.45  # inches of a panel among several
_LEAST_ALONE = 2.2
_WIDE = 2.2  # inches of a panel that has room for five numbers of bytes or seconds
_AROUND = 0.7  # inches above and below a panel


def lay_panels(
    figure: "Figure", titles: Sequence[str], kinds: int = 1, *, least: float = 0.0
) -> list["Axes"]:
    """Return axes for each kind of number, for each title, in lines of as many as fit.

    A kind begins a line where there are several titles; else kinds lie side by side. The figure
    gets the height that they need. least: inches that a panel is wide at least.
    """
    has_blocks = len(titles) > 1
    wide = len(titles) if has_blocks else kinds
    blocks = kinds if has_blocks else 1
    lines = math.ceil(wide / _count_fitting(figure, least))
    across = math.ceil(wide / lines)  # six in two lines are three and three, not five and one
    n_lines = lines * blocks
    height = _choose_height(figure.get_figwidth() / max(across, 2), n_lines)
    figure.set_figheight(height * lines * blocks)
    grid = figure.subplots(n_lines, across, squeeze=False)
    panels = []
    for first in range(0, n_lines, lines):
        block = grid[first : first + lines]
        cells = list(block.ravel())
        panels += cells[:wide]
        for cell in cells[wide:]:
            cell.remove()
    room = figure.get_figwidth() / across
    for ax, title in zip(panels, [*titles] * kinds, strict=True):
        _add_title(ax, title, room)
    return panels


def _choose_height(width: float, n_lines: int) -> float:
    """Return how high a panel is, by the width that it has."""
    if n_lines == 1:
        return max(0.84 * width, _LEAST_ALONE)
    return max(0.78 * width, _LEAST_HEIGHT)


def _count_fitting(figure: "Figure", least: float) -> int:
    """Return how many panels lie side by side: each has room for its numbers."""
    for_numbers = _LETTERS * 0.55 * find_small() / 72 + 0.55
    return max(1, int(figure.get_figwidth() / max(for_numbers, least)))


def _add_title(ax: "Axes", title: str, room: float) -> None:
    if not title:
        return
    small = find_small()
    lines = wrap_text(title, room - 0.2, small, 3)
    ax.set_title(
        "\n".join(lines),
        loc="left",
        fontsize=small,
        color=choose_shade(0.15),
    )


def is_first_in_line(ax: "Axes") -> bool:
    """Return whether no panel stands left of this one."""
    place = ax.get_subplotspec()
    return place is None or place.is_first_col()


def is_last_in_column(ax: "Axes") -> bool:
    """Return whether no panel stands below this one."""
    place = ax.get_subplotspec()
    if place is None:
        return True
    for panel in ax.figure.axes:
        other = panel.get_subplotspec()
        if other is None:
            continue
        is_in_column = other.colspan.start == place.colspan.start
        is_below = other.rowspan.start > place.rowspan.start
        if is_in_column and is_below:
            return False
    return True


def find_width(ax: "Axes") -> float:
    """Return the inches that a panel takes, its numbers among them."""
    place = ax.get_subplotspec()
    across = 1 if place is None else place.get_gridspec().ncols
    figure: Any = ax.figure
    return float(figure.get_figwidth()) / across


def find_room(ax: "Axes") -> float:
    """Return the inches that the label of a vertical axis has."""
    place = ax.get_subplotspec()
    rows = 1 if place is None else place.get_gridspec().nrows
    figure: Any = ax.figure
    around = _AROUND if rows == 1 else 0.35
    height = float(figure.get_figheight())
    return height / rows - around


def say_nothing(ax: "Axes", why: str) -> None:
    """Write into a panel why nothing is drawn in it, in the place of its numbers."""
    small = find_small()
    lines = wrap_text(why, find_width(ax) - _AROUND, small, 3)
    ax.set(xticks=[], yticks=[])
    ax.text(
        0.5,
        0.5,
        "\n".join(lines),
        ha="center",
        va="center",
        transform=ax.transAxes,
        fontsize=small,
        color=choose_shade(0.35),
    )


def label_values(ax: "Axes", label: str, *, is_own: bool = False) -> None:
    """Write what the vertical axis shows, where the panel is the first of its line.

    is_own: whether panels of a line show different things, and each says what.
    """
    if is_own or is_first_in_line(ax):
        size = find_small() + 1
        ax.set_ylabel("\n".join(wrap_text(label, find_room(ax), size, 3)))
    draw_grid(ax)


def draw_grid(ax: "Axes", axis: str = "both") -> None:
    """Draw faint lines behind all else, unless the user's own style says how."""
    import matplotlib

    named: Any = axis
    if matplotlib.rcParams["axes.grid"]:
        return
    ax.grid(visible=True, axis=named, color=choose_shade(0.88), linewidth=0.5)
    ax.set_axisbelow(True)


def describe_metric(metric: str) -> str:
    """Return a metric in words, with its unit."""
    unit = " (%)" if is_percentage(metric) else ""
    return f"{_NAMES.get(metric, metric.replace('_', ' '))}{unit}"


def describe_measure(measure: RunMeasure, metric: str) -> str:
    """Return a measure in words, with its unit."""
    if measure.name == "last":
        return describe_metric(metric)
    unit = " (%)" if measure.is_share else ""
    words = measure.title.removesuffix(" %")
    of_parties = "accuracy, party " if measure.is_of_parties else ""
    return f"{of_parties}{words}{unit}"


def find_scale(metric: str) -> float:
    """Return 100 for accuracies, which are shown in percent."""
    return 100 if is_percentage(metric) else 1


def label_progress(ax: "Axes", along: Along) -> None:
    """Write how far runs are along the horizontal axis."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    is_last = is_last_in_column(ax)
    if along == "rounds":
        ax.set_xlabel("round" if is_last else "")
        ax.set_xticks(_choose_rounds(ax.get_xlim()[1], _count_ticks(ax)))
        return
    ax.xaxis.set_major_locator(MaxNLocator(5 if find_width(ax) > _WIDE else 3))
    if along == "seconds":
        ax.set_xlabel("seconds of training and evaluation" if is_last else "")
        return
    size, name = _choose_unit(ax.get_xlim()[1])
    ax.set_xlabel(f"{name} moved" if is_last else "")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / size:g}"))


def _choose_unit(n_bytes: float) -> tuple[float, str]:
    """Return the largest unit of which there is one or more."""
    for size, name in _UNITS:
        if n_bytes >= size:
            return size, name
    return 1, "bytes"


def _count_ticks(ax: "Axes") -> int:
    """Return how many numbers fit along the horizontal axis, at most 7."""
    _, last = ax.get_xlim()
    letters = len(f"{last:.0f}") + 1.5
    points = (find_width(ax) - 0.6) * 72
    fitting = int(points / (letters * 0.6 * find_small()))
    return max(2, min(7, fitting))


def _choose_rounds(last: float, most: int) -> list[int]:
    """Return the rounds with a tick: the first, and round numbers up to `last`."""
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(most, integer=True).tick_values(0, last)
    return [1, *(int(tick) for tick in ticks if 1 < tick <= last)]
