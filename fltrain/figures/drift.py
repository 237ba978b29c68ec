"""How far parties move the weights, and how alike their ways are, round by round."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from ..evidence.party_values import list_known, read_whole_history
from ..evidence.records import RunRecord
from ..runs.metric_names import History
from ..runs.metrics import DRIFT_COSINE, DRIFT_NORM
from ._key import add_key, describe_trials, list_lost
from ._lines import LineLook, Trial, draw_setting
from ._panels import label_progress, label_values, lay_panels
from ._runs import Arrangement, FigureRuns, SeriesRuns
from ._styles import FEW, LineStyle, choose_series_styles
from ._text import FigureText

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Figure = Any  # the registry resolves annotations where matplotlib may be missing

__all__ = ["drift"]

PartySpread = Literal["percentiles", "range", "none"]

_ALL = "all"
_MOST_PANELS = 40
_SAID = {DRIFT_NORM: "norm of what a party moved", DRIFT_COSINE: "its cosine to the mean"}
_BANDS = {
    "percentiles": ", band from the 10th to the 90th percentile of them",
    "range": ", band from the lowest to the highest of them",
    "none": "",
}
_PERCENTILES = {"percentiles": (10, 90), "range": (0, 100)}


@dataclass(frozen=True)
class _RunDrift:
    """A run, and the metrics of its rounds, lists among them."""

    record: RunRecord
    history: History

    def read_rounds(self, metric: str) -> dict[int, list[float]]:
        """Return the values of the parties that trained, by round."""
        found = {}
        for metrics in self.history:
            values = metrics.get(metric)
            known = list_known(values) if isinstance(values, list) else []
            if known:
                found[metrics["round"]] = known
        return found


@dataclass(frozen=True)
class _DriftPanel:
    """A panel: a number of a layer, "" for the whole model, of the runs that are in it."""

    title: str
    metric: str
    series: Sequence[SeriesRuns]


def drift(
    runs: FigureRuns,
    figure: Figure,
    *,
    layer: Annotated[
        str,
        "Layers with commas between, a panel each; all for every one. Of runs with --drift layers.",
    ] = "",
    spread: Annotated[
        PartySpread,
        "What lies around the mean of the parties: their 10th to 90th percentile, or all of them.",
    ] = "percentiles",
) -> FigureText:
    """How far local training moves the weights of the parties, and how alike their ways are.

    Of each evaluated round the norm of what a party's training moved, and its cosine to the mean of
    all parties that trained: a curve a setting, the mean over the parties of all its trials. Of
    runs that wrote it down (--drift whole). Where a trial failed, each run is a thin line.
    """
    plain = runs.without_metrics()
    arranged = plain.arrange(plain.find_measure())
    read: dict[str, _RunDrift] = {}
    for entry in arranged.entries:
        for record in entry.records:
            history = read_whole_history(record)
            read[record.name] = _RunDrift(record, history)
    layers = _choose_layers(layer, list(read.values()))
    titles = _list_titles(arranged, layers)
    panels = lay_panels(figure, titles, kinds=len(_SAID))
    look = LineLook(
        band="none", is_crowded=len(arranged.labels) > FEW, is_partial=runs.words.partial
    )
    styles = choose_series_styles(arranged.labels)
    notes = [*runs.notes, *arranged.list_lost_runs()]
    for ax, panel in zip(panels, _list_panels(arranged, layers), strict=True):
        notes += _draw_panel(ax, panel, read, look, styles, spread)
        number, _, _ = panel.metric.partition(".")
        label_values(ax, _SAID[number], is_own=len(titles) == 1)
        label_progress(ax, "rounds")
    caption = f"mean of the parties{_describe_parties(arranged, read)}{_BANDS[spread]}"
    add_key(figure, said=caption, lone=arranged.lone, extra=list_lost(arranged))
    return FigureText(caption, arranged.name_runs(), notes, arranged.lone)


def _choose_layers(asked: str, read: Sequence[_RunDrift]) -> list[str]:
    """Return the layers that are shown; "" for the whole model. UsageError for none."""
    known: dict[str, None] = {}
    for run in read:
        for metrics in run.history:
            for name in metrics:
                number, _, of_layer = name.partition(".")
                if number == DRIFT_NORM:
                    known.setdefault(of_layer)
    if not known:
        raise UsageError(
            'no run has drift_norm of single parties; train with --drift whole (drift = "whole" in '
            "a plan), or --drift layers"
        )
    layers = [layer for layer in known if layer]
    if not asked:
        return [""]
    if not layers:
        raise UsageError("these runs have the drift of whole models; --drift layers has each layer")
    if asked == _ALL:
        return layers
    chosen = [layer.strip() for layer in asked.split(",")]
    for layer in chosen:
        if layer not in layers:
            hint = did_you_mean(layer, layers)
            raise UsageError(f"no run has the drift of a layer {layer!r}; {hint}")
    return chosen


def _list_titles(arranged: Arrangement, layers: Sequence[str]) -> list[str]:
    """Return a title for each panel of each layer. UsageError where they are too many."""
    titles = []
    for layer in layers:
        for panel in arranged.panels:
            parts = [part for part in (layer, panel.title) if part]
            titles.append(", ".join(parts))
    n = len(titles) * len(_SAID)
    if n > _MOST_PANELS:
        raise UsageError(
            f"{len(layers)} layers in {len(arranged.panels)} panels make {n}, and {_MOST_PANELS} "
            "are the most; name some by --layer, or take some by --where AXIS=A,B"
        )
    return titles


def _list_panels(arranged: Arrangement, layers: Sequence[str]) -> list[_DriftPanel]:
    """Return the panels in the order in which `lay_panels` lays them."""
    panels = []
    for metric in _SAID:
        for layer in layers:
            name = f"{metric}.{layer}" if layer else metric
            panels += [_DriftPanel(one.title, name, one.series) for one in arranged.panels]
    return panels


def _draw_panel(
    ax: "Axes",
    panel: _DriftPanel,
    read: Mapping[str, _RunDrift],
    look: LineLook,
    styles: Mapping[str, LineStyle],
    spread: PartySpread,
) -> list[str]:
    """Draw the curves of a panel, and return a line for each that there is not."""
    gaps = []
    for series in panel.series:
        style = styles[series.label]
        of_runs = [read[record.name] for record in series.entry.records]
        trials = [_average_parties(one, panel.metric) for one in of_runs]
        if not draw_setting(ax, trials, panel.metric, look, style):
            gaps.append(f"no curve of {panel.metric}: {series.label}")
            continue
        whole = [one for one in of_runs if one.record.state == "done"]
        has_all = len(whole) == len(of_runs)
        if spread != "none" and (has_all or look.is_partial):
            _draw_band(ax, whole, panel.metric, spread, style, is_crowded=look.is_crowded)
    if panel.metric.startswith(DRIFT_NORM):
        ax.set_ylim(bottom=0)
    return gaps


def _average_parties(run: _RunDrift, metric: str) -> Trial:
    """Return the mean over the parties of a run as if it were its metric."""
    history = []
    for round, values in run.read_rounds(metric).items():
        mean = statistics.fmean(values)
        history.append({"round": round, metric: mean})
    return Trial(history, run.record.state == "failed")


def _draw_band(
    ax: "Axes",
    runs: Sequence[_RunDrift],
    metric: str,
    spread: PartySpread,
    style: LineStyle,
    *,
    is_crowded: bool,
) -> None:
    """Draw where the parties of all trials lie around their mean, in rounds that all have."""
    found = [one.read_rounds(metric) for one in runs]
    shared = [round for round in found[0] if all(round in rounds for rounds in found)]
    low, high = [], []
    for round in shared:
        pooled = np.concatenate([rounds[round] for rounds in found])
        lowest, highest = np.percentile(pooled, _PERCENTILES[spread])
        low.append(float(lowest))
        high.append(float(highest))
    faint = 0.08 if is_crowded else 0.18
    ax.fill_between(shared, low, high, color=style.colour, alpha=faint, linewidth=0)


def _describe_parties(arranged: Arrangement, read: Mapping[str, _RunDrift]) -> str:
    """Return of how many parties and seeds a curve is, as far as these are one number."""
    sizes = set()
    for run in read.values():
        rounds = run.read_rounds(DRIFT_NORM)
        sizes |= {len(values) for values in rounds.values()}
    told = []
    if len(sizes) == 1:
        told.append(f"{sizes.pop()} in a round")
    trials = describe_trials(list(arranged.entries))
    if trials:
        told.append(f"of {trials} seeds")
    joined = ", ".join(told)
    return f" ({joined})" if told else ""
