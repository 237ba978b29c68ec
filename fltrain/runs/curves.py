"""Curves of runs, together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from niidpart.plot import prepare_picture_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = ("-", "--", "-.", ":")
_COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#000000",
)  # Okabe and Ito: told apart by colour-blind readers


def curves(histories: Mapping[str, Sequence[Mapping[str, Any]]]) -> "Figure":
    """Test accuracy and training loss by round, a line for each run; thin, the mean accuracy of parties' own models at home, where they have
    some beside the one served. histories: label -> the metrics of its rounds."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(9, 3.8), dpi=150, layout="constrained")
    panels = figure.subplots(1, 2)
    for i, (label, history) in enumerate(histories.items()):
        style = {
            "color": _COLOURS[i % len(_COLOURS)],
            "linestyle": _LINES[i // len(_COLOURS) % len(_LINES)],
            "label": label,
            "marker": ".",
        }
        for ax, key, scale in zip(panels, ("test_accuracy", "train_loss"), (100, 1), strict=True):
            points = [(m["round"], scale * m[key]) for m in history if m.get(key) is not None]
            ax.plot([r for r, _ in points], [v for _, v in points], **style)
        own = [
            (m["round"], 100 * m["personal_party_test_accuracy_mean"])
            for m in history
            if "personal_party_test_accuracy_mean" in m
        ]
        if own:
            panels[0].plot(
                *zip(*own, strict=True),
                color=style["color"],
                linestyle=":",
                linewidth=1,
                label=f"{label}, personal",
            )
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


def save(histories: Mapping[str, Sequence[Mapping[str, Any]]], path: str | Path) -> Path:
    """Draws the curves into a file; its ending says which format (png, svg, pdf)."""
    path = prepare_picture_path(path)
    curves(histories).savefig(path)
    return path
