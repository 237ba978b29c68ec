"""By how much a metric changes from round to round."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from niidpart.errors import UsageError

from ..evidence.party_values import read_whole_history
from ..evidence.records import RunRecord
from ..runs.reaching import measure_changes
from ._bands import describe_band
from ._key import add_key, describe_trials, list_lost
from ._lines import LineLook, Trial, draw_setting
from ._panels import describe_metric, label_progress, label_values, lay_panels
from ._runs import FigureRuns
from ._styles import FEW, choose_series_styles
from ._text import FigureText

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = Any  # the registry resolves annotations where matplotlib may be missing

__all__ = ["changes"]

_METRIC = "party_test_accuracy"


def changes(
    runs: FigureRuns,
    figure: Figure,
    *,
    band: Annotated[
        Literal["deviation", "interval", "range", "none"], "What lies around the mean of trials."
    ] = "deviation",
) -> FigureText:
    """By how much a metric changes from one evaluated round to the next: a curve a setting.

    Of a metric of single parties, as party_test_accuracy is, which is shown unless another one is
    asked for, it is the mean of the changes of all parties (FedCD, Figures 2 and 5).
    """
    metric = runs.name_metric(_METRIC)
    plain = runs.without_metrics()
    arranged = plain.arrange(plain.find_measure())
    look = LineLook(band=band, is_crowded=len(arranged.labels) > FEW, is_partial=runs.words.partial)
    styles = choose_series_styles(arranged.labels)
    panels = lay_panels(figure, arranged.titles)
    notes = [*runs.notes, *arranged.list_lost_runs()]
    is_drawn = False
    for ax, panel in zip(panels, arranged.panels, strict=True):
        for series in panel.series:
            trials = [_read_changes(record, metric) for record in series.entry.records]
            style = styles[series.label]
            if draw_setting(ax, trials, metric, look, style):
                is_drawn = True
        label_values(ax, f"change of {describe_metric(metric)}")
        label_progress(ax, "rounds")
    if not is_drawn:
        raise UsageError(f"no run has {metric} in two evaluated rounds, and so no change of it")
    caption = "size of the change since the evaluated round before, up or down"
    n_trials = describe_trials(list(arranged.entries))
    if n_trials:
        caption += f"; {describe_band(band, n_trials)}"
    add_key(figure, said=caption, lone=arranged.lone, extra=list_lost(arranged))
    return FigureText(caption, arranged.name_runs(), notes, arranged.lone)


def _read_changes(record: RunRecord, metric: str) -> Trial:
    """Return the changes of a run as if they were its metric."""
    found = measure_changes(read_whole_history(record), metric)
    history = [{"round": round, metric: size} for round, size in found]
    return Trial(history, record.state == "failed")
