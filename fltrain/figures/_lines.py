"""Lines of settings, round by round: the mean of trials with a band, or each run by itself."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..disk.plain_folder import PlainFolder
from ..evidence.records import RunRecord
from ..runs.metric_names import History
from ..runs.points import Along, Curve, add_seconds, build_curve
from ._bands import BandKind, find_limits
from ._panels import find_scale
from ._styles import LineStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW_POINTS = 25  # of a curve, which then has dots
_MARKERS = 12  # at most, of a long curve that has some


@dataclass(frozen=True)
class LineLook:
    """How lines are drawn. is_crowded: they are many. is_partial: some trials have a mean too."""

    along: Along = "rounds"
    band: BandKind = "deviation"
    is_crowded: bool = False
    is_partial: bool = False


@dataclass(frozen=True)
class Trial:
    """The rounds of a run; none where it left none. has_failed: whether it ended there."""

    history: History
    has_failed: bool = False


def read_trials(records: Sequence[RunRecord], along: Along) -> list[Trial]:
    """Return the rounds of each run, with their times where these are needed."""
    trials = []
    for record in records:
        history = record.history
        if along == "seconds" and record.folder is not None:
            history = add_seconds(history, PlainFolder(record.folder))
        trials.append(Trial(history, record.state == "failed"))
    return trials


def draw_setting(
    ax: "Axes", trials: Sequence[Trial], metric: str, look: LineLook, style: LineStyle
) -> bool:
    """Draw the mean of trials with its band, and return whether there is a line.

    Where one failed, or has no rounds, each is a thin line, those that failed with a cross at their
    end; unless parts may have a mean, which is then of the others.
    """
    held = [one for one in trials if one.history]
    whole = [one for one in held if not one.has_failed]
    has_lost = len(whole) < len(trials)
    if look.is_partial:
        held = whole or held
    elif has_lost and len(trials) > 1:
        return _draw_alone(ax, held, metric, look, style)
    if not held:
        return False
    curve = build_curve([one.history for one in held], metric, look.along)
    if not curve.x:
        return False
    draw_curve(ax, curve, metric, look, style)
    draw_band(ax, curve, metric, look, style)
    if len(held) == 1 and held[0].has_failed:
        _draw_cross(ax, curve, metric, style)
    return True


def draw_curve(ax: "Axes", curve: Curve, metric: str, look: LineLook, style: LineStyle) -> None:
    """Draw a curve by the look of its setting."""
    n = len(curve.y)
    width = 1.0 if look.is_crowded else 1.5
    ax.plot(
        curve.x,
        _scale(curve.y, metric),
        color=style.colour,
        linestyle=style.dash,
        label=style.label,
        linewidth=style.rim + width,
        marker=_choose_marker(style, n),
        markevery=1 if n <= _FEW_POINTS else math.ceil(n / _MARKERS),
        zorder=style.order,
        markersize=_measure_marker(style, look.is_crowded),
    )


def draw_own(ax: "Axes", curve: Curve, metric: str, style: LineStyle) -> None:
    """Draw the curve of models that parties keep for themselves: thin, with rings."""
    ax.plot(
        curve.x,
        _scale(curve.y, metric),
        color=style.colour,
        linestyle=style.dash,
        linewidth=0.8,
        marker="o",
        markevery=max(1, math.ceil(len(curve.x) / _MARKERS)),
        markersize=4,
        markerfacecolor="none",
        zorder=style.order,
        label=f"{style.label}, personal",
    )


def draw_band(ax: "Axes", curve: Curve, metric: str, look: LineLook, style: LineStyle) -> None:
    """Draw what lies around a curve; nothing where it is of a single run, or all are equal."""
    lows, highs = [], []
    for values in curve.values:
        low, high = find_limits(values, look.band)
        lows.append(low)
        highs.append(high)
    if lows == highs:
        return
    ax.fill_between(
        curve.x,
        _scale(lows, metric),
        _scale(highs, metric),
        color=style.colour,
        alpha=0.08 if look.is_crowded else 0.18,
        linewidth=0,
    )


def _draw_alone(
    ax: "Axes", trials: Sequence[Trial], metric: str, look: LineLook, style: LineStyle
) -> bool:
    """Draw each run of a setting by a thin line: of a part of its trials there is no mean."""
    label = style.label
    for one in trials:
        curve = build_curve([one.history], metric, look.along)
        if not curve.x:
            continue
        ax.plot(
            curve.x,
            _scale(curve.y, metric),
            color=style.colour,
            linestyle=style.dash,
            linewidth=0.6,
            alpha=0.8,
            zorder=style.order,
            label=label,
        )
        label = "_another run"
        if one.has_failed:
            _draw_cross(ax, curve, metric, style)
    return label != style.label


def _draw_cross(ax: "Axes", curve: Curve, metric: str, style: LineStyle) -> None:
    """Draw a cross where a run failed."""
    ax.plot(
        curve.x[-1:],
        _scale(curve.y[-1:], metric),
        linestyle="",
        marker="x",
        markersize=6,
        markeredgewidth=1.4,
        color=style.colour,
        zorder=4,
        label="_failed",
    )


def _scale(values: Sequence[float], metric: str) -> list[float]:
    """Return values as they are shown: accuracies in percent."""
    scale = find_scale(metric)
    return [scale * value for value in values]


def _choose_marker(style: LineStyle, n: int) -> str:
    """Return the marker of a curve of n points: none for the usual dot on a long one.

    Other markers tell curves apart, and are on long ones too. The legend shows what the curve has.
    """
    is_plain = style.marker == "."
    return "" if is_plain and n > _FEW_POINTS else style.marker


def _measure_marker(style: LineStyle, is_crowded: bool) -> float:
    size = 3.0 if is_crowded else 5.0
    return size if style.marker == "." else size - 1
