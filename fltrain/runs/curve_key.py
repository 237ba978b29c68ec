"""The key of a picture of curves: its legend, what its bands are, and its title."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from niidpart.plot import choose_ink, measure_text, smallest_font, wrap_text

from .metric_names import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HANDLE = 0.7  # inches of a legend's line and the gaps beside it
_LISTED = 60  # entries of a legend

HistoriesByLabel = Mapping[str, Sequence[History]]


def add_key(figure: "Figure", trials: HistoriesByLabel, title: str | None) -> None:
    """Draw the legend below the panels and the title above; the picture grows by their rows.

    Its columns are as many as fit, and its order is that of the curves' last values, so that the
    highest curve comes first; one that the first panel lacks comes after those that it has.
    """
    from matplotlib.lines import Line2D

    width, small = figure.get_figwidth(), smallest_font()
    drawn = _list_drawn(figure.axes)
    band = _describe_bands(trials)
    handles: list[Any] = drawn[:_LISTED]
    room = width - 0.3 - _HANDLE
    labels = [" ".join(wrap_text(str(line.get_label()), room, small, 1)) for line in handles]
    if len(drawn) > _LISTED:
        handles.append(Line2D([], [], linestyle=""))
        labels.append(f"and {len(drawn) - _LISTED} more")
    if not title and len(trials) == 1:
        title = next(iter(trials))  # which no legend says
    if title:
        figure.suptitle(title, x=0.01, ha="left", color=choose_ink())
    if len(labels) < 2 and not band:
        return
    widest = max(measure_text(label, small) for label in labels) + _HANDLE
    columns = max(1, min(len(labels), int((width - 0.2) / widest)))
    rows = math.ceil(len(labels) / columns) + bool(band)
    figure.set_figheight(figure.get_figheight() + rows * 1.45 * small / 72 + 0.1)
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=columns,
        fontsize=small,
        title=band,
        title_fontsize=small,
        frameon=False,
        handlelength=3.4,
        columnspacing=1.0,
        labelspacing=0.25,
    )


def _describe_bands(trials: HistoriesByLabel) -> str | None:
    """Return what a band is, and over how many runs; None where each setting has one."""
    counts = sorted({len(runs) for runs in trials.values() if len(runs) > 1})
    if not counts:
        return None
    seeds = " or ".join(map(str, counts)) if len(counts) < 3 else f"{counts[0]} to {counts[-1]}"
    return f"mean, band ± 1 sample deviation over {seeds} seeds"


def _list_drawn(panels: Sequence["Axes"]) -> list[Any]:
    """Return a curve of each label, in whichever panel it is first; highest last value first."""
    found: dict[str, Any] = {}
    for ax in panels:
        drawn = [line for line in ax.lines if _list_heights(line)]
        for line in sorted(drawn, key=lambda line: _list_heights(line)[-1], reverse=True):
            found.setdefault(str(line.get_label()), line)
    return list(found.values())


def _list_heights(line: Any) -> list[float]:
    return [float(value) for value in line.get_ydata()]
