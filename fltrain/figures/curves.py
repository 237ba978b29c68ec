"""Metrics of runs, round by round."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from niidpart.errors import UsageError
from niidpart.wording import count_noun

from ..runs.metric_names import find_metric
from ..runs.points import build_curve
from ..studies.derived_values import is_derived
from ._bands import describe_band
from ._key import add_key, describe_trials, list_lost
from ._lines import LineLook, draw_band, draw_own, draw_setting, read_trials
from ._panels import describe_metric, label_progress, label_values, lay_panels, say_nothing
from ._runs import Arrangement, FigureRuns, PanelRuns
from ._styles import FEW, LineStyle, choose_series_styles
from ._text import FigureText

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Figure = Any  # the registry resolves annotations where matplotlib may be missing

__all__ = ["curves"]

_USUAL = ("test_accuracy", "train_loss")
_OWN = "personal_test_accuracy"  # averaged as test_accuracy is, beside which it stands


def curves(
    runs: FigureRuns,
    figure: Figure,
    *,
    x: Annotated[
        Literal["rounds", "bytes", "seconds"],
        "The horizontal axis: bytes of all messages, or seconds of training and evaluation, so far",
    ] = "rounds",
    band: Annotated[
        Literal["deviation", "interval", "range", "none"],
        "What lies around the mean of trials: a sample deviation on both sides, the 95 % interval "
        "of the mean, or all of them",
    ] = "deviation",
) -> FigureText:
    """Metrics by round, bytes or seconds: a curve a setting, the mean of its trials, with a band.

    Of one panel test accuracy and training loss, of several test accuracy, unless others are asked
    for. With the accuracy of the served models goes that of the models that parties keep beside
    them, with rings. A curve ends where the shortest of its runs does; where a trial failed, or has
    no rounds at all, there is no mean, and each run is a thin line, with a cross where it failed.
    """
    _require_logged(runs.words.metrics)
    arranged = runs.arrange(runs.find_measure())
    metrics = _choose_metrics(runs, arranged)
    look = LineLook(
        along=x,
        band=band,
        is_crowded=len(arranged.labels) > FEW,
        is_partial=runs.words.partial,
    )
    styles = choose_series_styles(arranged.labels)
    panels = lay_panels(figure, arranged.titles, len(metrics))
    drawn = [(metric, panel) for metric in metrics for panel in arranged.panels]
    notes = [*runs.notes, *arranged.list_lost_runs()]
    for ax, (metric, panel) in zip(panels, drawn, strict=True):
        notes += _draw_panel(ax, panel, metric, look, styles)
        if metric == "test_accuracy" and _OWN not in metrics:
            _draw_own_models(ax, panel, look, styles)
    for ax, (metric, panel) in zip(panels, drawn, strict=True):
        label_values(ax, describe_metric(metric), is_own=len(arranged.panels) == 1)
        label_progress(ax, x)
        if not ax.lines:
            say_nothing(ax, _explain_nothing(panel, metric))
    trials = describe_trials(list(arranged.entries))
    caption = describe_band(band, trials) if trials else ""
    add_key(figure, said=caption, lone=arranged.lone, extra=list_lost(arranged))
    return FigureText(caption, arranged.name_runs(), notes, arranged.lone)


def _require_logged(metrics: Sequence[str]) -> None:
    """Raise UsageError for what is derived of a run, and stands in no line of its rounds."""
    for metric in metrics:
        if is_derived(metric):
            raise UsageError(
                f"{metric} is derived of whole runs, and curves show what rounds have; "
                f"fltrain figure against --metric {metric} draws it against an axis"
            )


def _choose_metrics(runs: FigureRuns, arranged: Arrangement) -> Sequence[str]:
    """Return the metrics that are drawn, as histories call them. UsageError for unknown ones."""
    if not runs.words.metrics:
        return _USUAL if len(arranged.panels) == 1 else _USUAL[:1]
    histories = [record.history for record in runs.records]
    return [find_metric(metric, histories) for metric in runs.words.metrics]


def _draw_panel(
    ax: "Axes",
    panel: PanelRuns,
    metric: str,
    look: LineLook,
    styles: Mapping[str, LineStyle],
) -> list[str]:
    """Draw the curves of a panel, and return a line for each that there is not."""
    gaps = []
    place = f" in {panel.title}" if panel.title else ""
    for series in panel.series:
        trials = read_trials(series.entry.records, look.along)
        if not draw_setting(ax, trials, metric, look, styles[series.label]):
            gaps.append(f"no curve of {metric} along {look.along}{place}: {series.label}")
    return gaps


def _explain_nothing(panel: PanelRuns, metric: str) -> str:
    """Return why a panel has no curve."""
    entries = [series.entry for series in panel.series]
    asked = sum(len(entry.records) for entry in entries)
    failed = sum(len(entry.failed) for entry in entries)
    if failed == asked:
        return f"no curve: all {count_noun(asked, 'run')} failed"
    if any(entry.n for entry in entries):
        return f"no curve: no run has {metric}"
    return f"no curve: of {count_noun(asked, 'run')} {failed} failed, and none has ended"


def _draw_own_models(
    ax: "Axes", panel: PanelRuns, look: LineLook, styles: Mapping[str, LineStyle]
) -> None:
    """Draw the test accuracy of the models that parties keep for themselves, where they do."""
    for series in panel.series:
        trials = read_trials(series.entry.records, look.along)
        histories = [one.history for one in trials if one.history]
        curve = build_curve(histories, _OWN, look.along) if histories else None
        if curve is None or not curve.x:
            continue
        style = styles[series.label]
        draw_own(ax, curve, _OWN, style)
        draw_band(ax, curve, _OWN, replace(look, is_crowded=True), style)
