"""Curves of runs, together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from niidpart.plot import prepare_picture_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = ("-", "--", "-.", ":")
# Okabe and Ito: colour-blind readers can tell them apart.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
_OWN = "personal_party_test_accuracy_mean"

History = Sequence[Mapping[str, Any]]


def draw_curves(histories: Mapping[str, History]) -> "Figure":
    """Return a figure of test accuracy and training loss by round, a line for each run.

    Thin: the mean accuracy of parties' own models at home, where they have some beside the one
    served. histories: label -> the metrics of its rounds.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(9, 3.8), dpi=150, layout="constrained")
    panels = figure.subplots(1, 2)
    for i, (label, history) in enumerate(histories.items()):
        colour = _COLOURS[i % len(_COLOURS)]
        line = _LINES[i // len(_COLOURS) % len(_LINES)]
        style = {"color": colour, "linestyle": line, "label": label, "marker": "."}
        panels[0].plot(*_find_points(history, "test_accuracy", 100), **style)
        panels[1].plot(*_find_points(history, "train_loss", 1), **style)
        own = _find_points(history, _OWN, 100)
        if own[0]:
            thin = {"color": colour, "linestyle": ":", "linewidth": 1}
            panels[0].plot(*own, **thin, label=f"{label}, personal")
    for ax, what in zip(panels, ("test accuracy (%)", "training loss"), strict=True):
        ax.set_xlabel("round")
        ax.set_ylabel(what)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(alpha=0.3)
    panels[1].set_ylim(bottom=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(len(labels), 4),
        fontsize=8,
        frameon=False,
    )
    return figure


def _find_points(history: History, metric: str, scale: float) -> tuple[list[int], list[float]]:
    """Return the rounds that have a metric, and its values times `scale`."""
    there = [m for m in history if m.get(metric) is not None]
    return [m["round"] for m in there], [scale * m[metric] for m in there]


def save_curves(histories: Mapping[str, History], path: str | Path) -> Path:
    """Draw the curves into a file; its ending says which format (png, svg, pdf)."""
    path = prepare_picture_path(path)
    draw_curves(histories).savefig(path)
    return path
