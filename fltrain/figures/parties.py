"""How a metric lies over the parties, where a mean says little."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from niidpart.errors import UsageError
from niidpart.plot import measure_text, wrap_text

from ..evidence.party_values import list_known, name_home_metric, read_party_values
from ..evidence.tables import TableEntry
from ._key import add_key, list_lost
from ._look import choose_shade, find_small
from ._panels import (
    describe_metric,
    draw_grid,
    find_scale,
    is_first_in_line,
    is_last_in_column,
    lay_panels,
)
from ._points import PointStyle, choose_point_styles
from ._runs import Arrangement, FigureRuns, PanelRuns
from ._text import FigureText

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Figure = Any  # the registry resolves annotations where matplotlib may be missing

__all__ = ["parties"]

_MOST_DOTS = 400  # of a row, evenly of all: more are a blot
_GOLDEN = 0.618034  # fractions of its multiples lie evenly, in no visible order
_ROW = 2.4  # lines of text that a row is high
_LABEL = 0.33  # of the width, which the names of rows take at most
_AROUND = 0.55  # inches above and below the rows

Values = Mapping[tuple[str, str], Sequence[float]]  # by panel and series, of all parties


def parties(runs: FigureRuns, figure: Figure) -> FigureText:
    """A metric of each party in the last round that has it: a row a setting, all trials together.

    Unless a metric is asked for, accuracy on the parties' own test parts by the models that they
    use: fine-tuned ones, else their own, else those served. Dots are parties, the thin line goes
    from the 10th percentile to the 90th, the thick one between the quartiles; the stroke is the
    median, the mark the mean.
    """
    metric = _find_metric(runs)
    plain = runs.without_metrics()
    arranged = plain.arrange(plain.find_measure())
    values = _read_values(arranged, metric)
    if not any(values.values()):
        raise UsageError(
            f"no run has {metric or 'party_test_accuracy'} of single parties; splits with test "
            "parts (--test 0.2) give party_test_accuracy"
        )
    styles = choose_point_styles(list(arranged.labels))
    panels = lay_panels(figure, arranged.titles)
    _set_height(figure, len(arranged.labels), panels)
    for ax, panel in zip(panels, arranged.panels, strict=True):
        _draw_panel(ax, panel, values, metric, styles)
        _label_rows(ax, list(arranged.labels), figure.get_figwidth())
        if is_last_in_column(ax):
            ax.set_xlabel(_describe_axis(metric))
    caption = _describe(values, arranged)
    add_key(figure, said=caption, extra=list_lost(arranged))
    return FigureText(caption, arranged.name_runs(), [*runs.notes, *arranged.faults])


def _find_metric(runs: FigureRuns) -> str:
    """Return the metric that was asked for; "" for accuracy at home. UsageError for several."""
    if len(runs.words.metrics) > 1:
        raise UsageError(f"parties shows one metric, and {len(runs.words.metrics)} were given")
    return runs.words.metrics[0] if runs.words.metrics else ""


def _read_values(arranged: Arrangement, metric: str) -> Values:
    return {
        (panel.title, series.label): _read_entry(series.entry, metric)
        for panel in arranged.panels
        for series in panel.series
    }


def _read_entry(entry: TableEntry, metric: str) -> list[float]:
    """Return the values of all parties in all trials of an entry."""
    found: list[float] = []
    for record in entry.records:
        name = metric or name_home_metric(record)
        if name is not None:
            found += list_known(read_party_values(record, name))
    return found


def _set_height(figure: Figure, n_rows: int, panels: Sequence["Axes"]) -> None:
    """Make the figure as high as its rows need."""
    place = panels[0].get_subplotspec()
    lines = 1 if place is None else place.get_gridspec().nrows
    each = n_rows * _ROW * find_small() / 72 + _AROUND
    figure.set_figheight(lines * each)


def _draw_panel(
    ax: "Axes",
    panel: PanelRuns,
    values: Values,
    metric: str,
    styles: Mapping[str, PointStyle],
) -> None:
    rows = {label: place for place, label in enumerate(styles)}
    scale = find_scale(metric or "accuracy")
    for series in panel.series:
        found = scale * np.asarray(values[panel.title, series.label])
        if len(found):
            _draw_row(ax, rows[series.label], found, styles[series.label])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    draw_grid(ax, "x")


def _draw_row(ax: "Axes", row: int, values: Any, style: PointStyle) -> None:
    """Draw the parties of a row [n] and what describes them."""
    shown = np.sort(values)
    if len(shown) > _MOST_DOTS:
        chosen = np.linspace(0, len(shown) - 1, _MOST_DOTS).round()
        shown = shown[chosen.astype(int)]
    heights = row + 0.56 * (np.arange(1, len(shown) + 1) * _GOLDEN % 1 - 0.5)
    ax.plot(
        shown,
        heights,
        linestyle="",
        marker="o",
        markersize=2,
        markeredgewidth=0,
        color=style.colour,
        alpha=0.45,
        label="_parties",
    )
    low, first, middle, third, high = np.percentile(values, [10, 25, 50, 75, 90])
    ax.plot([low, high], [row, row], color=style.colour, linewidth=1.0, label="_reach")
    ax.plot(
        [first, third],
        [row, row],
        color=style.colour,
        linewidth=4.5,
        solid_capstyle="butt",
        label="_quartiles",
    )
    ax.plot([middle, middle], [row - 0.24, row + 0.24], color=choose_shade(0), linewidth=1.2)
    ax.lines[-1].set_label("_median")
    ax.plot(
        [values.mean()],
        [row],
        linestyle="",
        marker=style.mark,
        markersize=5,
        color=choose_shade(1.0),  # inside the bar its own colour would not be seen
        markeredgecolor=style.colour,
        markeredgewidth=0.9,
        label=f"_{style.label}",
    )


def _label_rows(ax: "Axes", labels: Sequence[str], width: float) -> None:
    """Write what rows are, where the panel is the first of its line."""
    ax.set_yticks(range(len(labels)))
    ax.tick_params(axis="y", length=0)
    if not is_first_in_line(ax):
        ax.set_yticklabels([])
        return
    small = find_small()
    room = _LABEL * width
    told = []
    for label in labels:
        fits = measure_text(label, small) <= room
        told.append(label if fits else "\n".join(wrap_text(label, room, small, 2)))
    ax.set_yticklabels(told, fontsize=small)


def _describe_axis(metric: str) -> str:
    if not metric:
        return "accuracy at a party (%)"
    return f"{describe_metric(metric)}, of a party"


def _describe(values: Values, arranged: Arrangement) -> str:
    """Return how many parties of how many runs a row has, and what its marks are."""
    sizes = sorted({len(found) for found in values.values() if found})
    of_one = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    counts = sorted({entry.n for entry in arranged.entries if entry.n})
    trials = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    of_runs = f" in {trials} runs" if counts != [1] else ""
    return (
        f"{of_one} parties{of_runs}; line: 10th to 90th percentile, bar: quartiles, "
        "stroke: median, mark: mean"
    )
