"""Curves of runs, together: a line for each setting, a band where it has trials."""

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from niidpart.files import write_whole
from niidpart.plot import (
    Medium,
    choose_grey,
    choose_medium,
    prepare_picture_path,
    smallest_font,
    use_look,
    wrap_text,
)

from .curve_key import HistoriesByLabel, add_key
from .line_styles import FEW, LineStyle, choose_styles
from .metric_names import find_metric, is_percentage
from .points import Along, Curve, build_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_USUAL = ("test_accuracy", "train_loss")
_OWN = "personal_test_accuracy"  # averaged as test_accuracy is, beside which it stands
_NAMES = {
    "test_accuracy": "test accuracy",
    "train_loss": "training loss",
    "party_test_accuracy_mean": "accuracy at the parties, mean",
    "party_test_accuracy_worst": "accuracy at the parties, worst",
    _OWN: "test accuracy of personal models",
    "personal_party_test_accuracy_mean": "accuracy of personal models at home, mean",
}
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_LEAST_HEIGHT = 2.2  # inches
_FEW_POINTS = 25  # of a curve, which then has dots
_AROUND = 0.7  # inches above and below a panel
_OWN_MARKERS = 12  # at most, of a curve of personal models: rings


def draw_curves(
    trials: HistoriesByLabel,
    *,
    metrics: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    along: Along = "rounds",
    medium: str = "screen",
    title: str | None = None,
    width: float | None = None,
    font_size: float | None = None,
    dark: bool = False,
) -> "Figure":
    """Return a figure with a panel for each metric, and in it a curve for each setting.

    Parameters
    ----------
    trials : mapping of str to list
        Label of a setting -> the metrics of the rounds of each of its runs. Of several it is the
        mean, and a band of a sample standard deviation on both sides.
    metrics : list of str
        Names in docs/training.md, or as `--metrics` takes them; none for test accuracy and training
        loss. With the accuracy of the served models goes that of the models that parties keep
        beside them, with rings.
    settings : mapping of str to str
        Label of a curve -> its setting, where several are of one: they have one colour, and
        a dash each.
    along : {"rounds", "bytes", "seconds"}
        The horizontal axis: bytes of all messages, or seconds of training and evaluation, so far.
    medium, title, width, font_size, dark
        As pictures of splits take them (docs/pictures.md).

    Raises
    ------
    UsageError
        For a metric that no run has.
    """
    shown = _find_shown(trials, metrics)
    look = choose_medium(medium, width, font_size, dark)
    with use_look(look):
        figure = _make_figure(look, len(shown))
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        lines = choose_styles(list(trials), settings or {})
        for ax, metric in zip(panels, shown, strict=True):
            curves = [build_curve(runs, metric, along) for runs in trials.values()]
            _draw_panel(ax, lines, curves, metric)
            if metric == "test_accuracy" and _OWN not in shown:
                _draw_own(ax, lines, trials, along)
            _label_axes(ax, metric, along, figure.get_figheight() - _AROUND)
        add_key(figure, trials, title)
        figure.draw_without_rendering()  # lays out with this look
    return figure


def list_gaps(trials: HistoriesByLabel, metrics: Sequence[str], along: Along) -> list[str]:
    """Return which settings have no curve in a panel, a line each; metrics: as `draw_curves`'."""
    gaps = []
    for metric in _find_shown(trials, metrics):
        for label, runs in trials.items():
            if not build_curve(runs, metric, along).x:
                gaps.append(f"no curve of {metric} along {along}: {label}")
    return gaps


def _find_shown(trials: HistoriesByLabel, metrics: Sequence[str]) -> Sequence[str]:
    """Return the metric of each panel, as histories call it."""
    histories = [history for runs in trials.values() for history in runs]
    return [find_metric(metric, histories) for metric in metrics] or _USUAL


def save_curves(trials: HistoriesByLabel, path: str | Path, **how: Any) -> Path:
    """Draw the curves into a file, whole or not at all; its ending says which format.

    how: as `draw_curves` takes it.
    """
    path = prepare_picture_path(path)
    figure = draw_curves(trials, **how)
    look = {name: how[name] for name in ("width", "font_size", "dark") if name in how}
    buffer = BytesIO()
    with use_look(choose_medium(how.get("medium", "screen"), **look)):
        figure.savefig(buffer, format=path.suffix[1:])
    write_whole(path, buffer.getvalue())
    return path


def _make_figure(look: Medium, n_panels: int) -> "Figure":
    from matplotlib.figure import Figure

    height = max(0.84 * look.width / max(n_panels, 2), _LEAST_HEIGHT)
    return Figure(figsize=(look.width, height), dpi=look.dpi, layout="constrained")


def _draw_panel(
    ax: "Axes", lines: Sequence[LineStyle], curves: Sequence[Curve], metric: str
) -> None:
    is_crowded = len(lines) > FEW
    for line, curve in zip(lines, curves, strict=True):
        y = [_find_scale(metric) * value for value in curve.y]
        ax.plot(
            curve.x,
            y,
            color=line.colour,
            linestyle=line.dash,
            label=line.label,
            linewidth=line.rim + (1.0 if is_crowded else 1.5),
            marker=line.marker,
            markevery=_space_markers(line, len(y)),
            zorder=line.order,
            markersize=_measure_marker(line, is_crowded),
        )
        _draw_band(ax, line, curve, metric, faint=0.08 if is_crowded else 0.18)


def _space_markers(line: LineStyle, n: int) -> int | list[int]:
    """Return every how many points there is a marker, or at which: none on a long curve.

    A marker that is not the usual dot tells curves apart, and is on long ones too.
    """
    if n <= _FEW_POINTS:
        return 1
    return [] if line.marker == "." else math.ceil(n / _OWN_MARKERS)


def _measure_marker(line: LineStyle, is_crowded: bool) -> float:
    size = 3.0 if is_crowded else 5.0
    return size if line.marker == "." else size - 1


def _draw_band(
    ax: "Axes",
    line: LineStyle,
    curve: Curve,
    metric: str,
    *,
    faint: float,
) -> None:
    """Draw a deviation on both sides of a curve; nothing where it is of a single run."""
    if not any(curve.deviation):
        return
    scale = _find_scale(metric)
    pairs = list(zip(curve.y, curve.deviation, strict=True))
    low = [scale * (value - deviation) for value, deviation in pairs]
    high = [scale * (value + deviation) for value, deviation in pairs]
    ax.fill_between(curve.x, low, high, color=line.colour, alpha=faint, linewidth=0)


def _draw_own(
    ax: "Axes", lines: Sequence[LineStyle], trials: HistoriesByLabel, along: Along
) -> None:
    """Draw the test accuracy of the models that parties keep for themselves, where they do."""
    for line, runs in zip(lines, trials.values(), strict=True):
        curve = build_curve(runs, _OWN, along)
        if not curve.x:
            continue
        ax.plot(
            curve.x,
            [_find_scale(_OWN) * value for value in curve.y],
            color=line.colour,
            linestyle=line.dash,
            linewidth=0.8,
            marker="o",
            markevery=max(1, math.ceil(len(curve.x) / _OWN_MARKERS)),
            markersize=4,
            markerfacecolor="none",
            zorder=line.order,
            label=f"{line.label}, personal",
        )
        _draw_band(ax, line, curve, _OWN, faint=0.08)


def _find_scale(metric: str) -> float:
    """Return 100 for accuracies, which are shown in percent."""
    return 100 if is_percentage(metric) else 1


def _label_axes(ax: "Axes", metric: str, along: Along, room: float) -> None:
    """room: inches for the label of the vertical axis."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    unit = " (%)" if is_percentage(metric) else ""
    label = f"{_NAMES.get(metric, metric.replace('_', ' '))}{unit}"
    ax.set_ylabel("\n".join(wrap_text(label, room, smallest_font() + 2, 3)))
    ax.grid(color=choose_grey(0.88), linewidth=0.5)
    if along == "rounds":
        ax.set_xlabel("round")
        ax.set_xticks(_choose_rounds(ax.get_xlim()[1]))
        return
    ax.xaxis.set_major_locator(MaxNLocator(5))
    if along == "seconds":
        ax.set_xlabel("seconds of training and evaluation")
        return
    size, name = next(
        ((size, name) for size, name in _UNITS if ax.get_xlim()[1] >= size), (1, "bytes")
    )
    ax.set_xlabel(f"{name} moved")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / size:g}"))


def _choose_rounds(last: float) -> list[int]:
    """Return the rounds with a tick: the first, and round numbers up to `last`."""
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(7, integer=True).tick_values(0, last)
    return [1, *(int(tick) for tick in ticks if 1 < tick <= last)]
