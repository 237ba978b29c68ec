"""What parties of one kind have together, round by round."""

from typing import TYPE_CHECKING, Annotated, Any

from niidpart.errors import UsageError

from ..disk.plain_folder import PlainFolder
from ..evidence.party_values import read_whole_history
from ..evidence.records import RunRecord
from ..runs.by_party import average_by_kind, find_kinds, sort_kind
from ._key import add_key
from ._lines import LineLook, Trial, draw_setting
from ._panels import describe_metric, label_progress, label_values, lay_panels
from ._runs import FigureRuns, SeriesRuns
from ._styles import FEW, choose_styles
from ._text import FigureText

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = Any  # the registry resolves annotations where matplotlib may be missing

__all__ = ["archetypes"]

_METRIC = "party_test_accuracy"
_SPLIT = "split.h5"  # of a run folder


def archetypes(
    runs: FigureRuns,
    figure: Figure,
    *,
    column: Annotated[
        str, "The column of the split that says of which kind a party is."
    ] = "archetype",
) -> FigureText:
    """A metric of parties by kind and round: a curve a kind, a panel a setting.

    A kind is FedCD's archetype, or what another column of the split says. The metric is
    party_test_accuracy unless another one of single parties is asked for; curves are means over the
    parties of a kind and over trials, bands a sample deviation over trials (FedCD, Figures 1, 4).
    """
    metric = runs.name_metric(_METRIC)
    plain = runs.without_metrics()
    arranged = plain.arrange(plain.find_measure())
    titles, found = [], []
    for panel in arranged.panels:
        for series in panel.series:
            titles.append(_name_panel(panel.title, series))
            found.append(_read_kinds(series, metric, column))
    distinct = set().union(*found)
    if not distinct:
        raise UsageError("no run is done, so there is no round to show")
    kinds = sorted(distinct, key=sort_kind)
    labels = [f"{column} {kind}" for kind in kinds]
    styles = dict(zip(kinds, choose_styles(labels, {}), strict=True))
    look = LineLook(is_crowded=len(kinds) > FEW, is_partial=runs.words.partial)
    panels = lay_panels(figure, titles)
    for ax, by_kind in zip(panels, found, strict=True):
        for kind, trials in by_kind.items():
            draw_setting(ax, trials, metric, look, styles[kind])
        label_values(ax, describe_metric(metric))
        label_progress(ax, "rounds")
    caption = f"mean over the parties of each {column}"
    add_key(figure, said=caption, order=labels)
    notes = [*runs.notes, *arranged.list_lost_runs()]
    return FigureText(caption, arranged.name_runs(), notes)


def _name_panel(title: str, series: SeriesRuns) -> str:
    return f"{series.label}, {title}" if title else series.label


def _read_kinds(series: SeriesRuns, metric: str, column: str) -> dict[str, list[Trial]]:
    """Return the rounds of each kind, one of each run."""
    found: dict[str, list[Trial]] = {}
    for record in series.entry.records:
        if record.folder is None:
            continue
        for kind, history in _average_run(record, metric, column).items():
            trial = Trial(history, record.state == "failed")
            found.setdefault(kind, []).append(trial)
    return found


def _average_run(
    record: RunRecord, metric: str, column: str
) -> dict[str, list[dict[str, float | int]]]:
    """Return the rounds of a run as if each kind were one, with its own metric."""
    assert record.folder is not None  # runs without one were left out
    PlainFolder(record.folder).has(_SPLIT)  # refuses a link
    kinds = find_kinds(record.folder / _SPLIT, column)
    averages = average_by_kind(read_whole_history(record), metric, kinds)
    histories = {}
    for kind, rounds in averages.items():
        histories[str(kind)] = [{"round": round, metric: mean} for round, mean in rounds]
    return histories
