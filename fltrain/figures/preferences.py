"""Which of several models parties of each kind prefer, round by round."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from niidpart.errors import UsageError

from ..disk.plain_folder import PlainFolder
from ..evidence.party_values import read_whole_history
from ..evidence.records import RunRecord
from ..runs.by_party import find_kinds, sort_kind
from ._key import add_key
from ._look import find_small
from ._panels import is_first_in_line, label_progress, lay_panels
from ._runs import FigureRuns
from ._styles import choose_mark, choose_styles
from ._text import FigureText

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Figure = Any  # the registry resolves annotations where matplotlib may be missing

__all__ = ["preferences"]

_METRIC = "internal_preferred_model"
_SPLIT = "split.h5"  # of a run folder
_MOST_ROUNDS = 60  # marks side by side; of more rounds some are left out, evenly

Chosen = Mapping[int, Mapping[str, int]]  # by round, by kind: the model


def preferences(
    runs: FigureRuns,
    figure: Figure,
    *,
    column: Annotated[
        str, "The column of the split that says of which kind a party is."
    ] = "archetype",
) -> FigureText:
    """The model that most parties of a kind prefer, by round: a row a kind, a panel a run.

    Of runs that wrote down their internals (--internals) with a choice of each party, as FedCD's do
    (FedCD, Figure 6). Of equally many the model of the lowest number.
    """
    metric = runs.name_metric(_METRIC)
    each = FigureRuns(runs.group, replace(runs.words, metrics=(), each=True, panels=()))
    arranged = each.arrange(each.find_measure())
    by_label = {one.label: one.entry.records[0] for one in arranged.panels[0].series}
    read = {label: _read_chosen(record, metric, column) for label, record in by_label.items()}
    chosen = {label: of_run for label, of_run in read.items() if of_run}
    if not chosen:
        raise UsageError(
            f"no run has {metric} of single parties; train FedCD with --internals (internals = "
            "true in a plan)"
        )
    marks = _choose_marks(chosen)
    panels = lay_panels(figure, list(chosen))
    for ax, of_run in zip(panels, chosen.values(), strict=True):
        _draw_run(ax, of_run, marks)
        label_progress(ax, "rounds")
        if is_first_in_line(ax):
            ax.set_ylabel(column)
    caption = f"the model that most parties of each {column} prefer"
    add_key(figure, said=caption, order=[f"model {model}" for model in marks])
    series = {label: [by_label[label].name] for label in chosen}
    return FigureText(caption, series, runs.notes)


def _read_chosen(record: RunRecord, metric: str, column: str) -> Chosen:
    """Return the model of each kind in each round that has one; {} for a run without."""
    history = read_whole_history(record)
    rounds = [one for one in history if isinstance(one.get(metric), list) and one[metric]]
    if not rounds or record.folder is None:
        return {}
    PlainFolder(record.folder).has(_SPLIT)  # refuses a link
    kinds = [str(kind) for kind in find_kinds(record.folder / _SPLIT, column)]
    return {one["round"]: _choose_models(one[metric], kinds) for one in rounds}


def _choose_models(preferred: Sequence[float | None], kinds: Sequence[str]) -> dict[str, int]:
    """Return the model that most parties of each kind prefer, by kind."""
    counts: dict[str, Counter[int]] = {}
    for kind, model in zip(kinds, preferred, strict=True):
        if model is not None:
            counts.setdefault(kind, Counter())[int(model)] += 1
    return {kind: min(found, key=lambda m: (-found[m], m)) for kind, found in counts.items()}


def _choose_marks(chosen: Mapping[str, Chosen]) -> dict[int, tuple[Any, str]]:
    """Return the colour and the mark of each model."""
    models = sorted(
        {model for run in chosen.values() for kinds in run.values() for model in kinds.values()}
    )
    styles = choose_styles([f"model {model}" for model in models], {})
    colours = [style.colour for style in styles]
    return {
        model: (colour, choose_mark(place))
        for place, (model, colour) in enumerate(zip(models, colours, strict=True))
    }


def _draw_run(ax: "Axes", chosen: Chosen, marks: Mapping[int, tuple[Any, str]]) -> None:
    kinds = sorted({kind for of_round in chosen.values() for kind in of_round}, key=sort_kind)
    rows = {kind: place for place, kind in enumerate(kinds)}
    rounds = sorted(chosen)
    step = math.ceil(len(rounds) / _MOST_ROUNDS)
    for model, (colour, mark) in marks.items():
        points = [
            (round, rows[kind])
            for round in rounds[::step]
            for kind, preferred in chosen[round].items()
            if preferred == model
        ]
        ax.plot(
            [round for round, _ in points],
            [row for _, row in points],
            linestyle="",
            marker=mark,
            markersize=3.5,
            color=colour,
            label=f"model {model}",
        )
    ax.set_yticks(range(len(kinds)), kinds, fontsize=find_small())
    ax.set_ylim(len(kinds) - 0.5, -0.5)
