"""Feature skew: the same examples as several parties see them."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..errors import UsageError
from ..features.relabelling import list_label_steps, relabel
from ..features.transforming import list_feature_steps
from ..registry import AtLeast, AtMost
from ..splits.split import FederatedSplit
from ..transforms._corruptions import KINDS
from ..wording import count_noun
from ._features import is_fresh, read_features, view_features
from ._look import (
    OKABE_ITO,
    Figure,
    join_words,
    shorten_name,
    smallest_font,
)
from ._parties import choose_parties

__all__ = ["noise"]

_MOST = 20  # examples, and parties: more could not be seen
_WIDE = 5  # inches: wider is a figure over both columns of a paper
_VECTORS = 500  # bars that a PDF holds as vectors; of more it would be large and slow
_BARS_SHAPE = 0.8  # height over width of a panel of bars
_WRONG = OKABE_ITO[5]  # vermilion: a label that is not the true one
_TITLES = 0.35  # inches above the panels
_TALLEST = 1.3  # times the width: about a page
_PARTIES_WIDE, _PARTIES_NARROW = 7, 4  # shown where none are asked for


def noise(
    split: FederatedSplit,
    figure: Figure,
    parties: Ints | None,
    data: Data,
    *,
    examples: Annotated[
        int, "How many examples, the first of classes spread evenly.", AtLeast(1), AtMost(_MOST)
    ] = 3,
) -> str:
    """The same examples as several parties see them, whoever holds them, and without transforms.

    Li et al., ICDE 2022, Figure 5. Images are shown as such, other features as a bar for each.
    Below an example stands the label that a party sees, where it is not the true one.
    """
    if not list_feature_steps(split.recipe) and not list_label_steps(split.recipe):
        advice = "make one with --noise SIGMA"
        raise UsageError(f"this split has no transform, so all parties see the same; {advice}")
    limit = _PARTIES_WIDE if figure.get_figwidth() > _WIDE else _PARTIES_NARROW
    ids, said = choose_parties(split, parties, limit, by="number")
    if len(ids) > _MOST:
        raise UsageError(
            f"{len(ids)} parties were asked for; {_MOST} beside each other can be seen"
        )
    rows = first_of_classes(data.labels, len(data.class_names), examples)
    original = read_features(data, rows)  # [n, ...]
    views, headings = [original], ["as it is"]
    for party in ids.tolist():
        views.append(view_features(split, data, party, rows))
        headings.append(_heading(split, party))
    names = [shorten_name(data.class_names[k]) for k in data.labels[rows]]
    low, high = _find_ends(original)
    panels = _draw_views(figure, views, headings, names, (low, high))
    if list_label_steps(split.recipe):
        for column, party in zip(panels.T[1:], ids.tolist(), strict=True):
            _name_wrong_labels(column, split, data, party, rows)
    words = [said, f"the same {count_noun(len(rows), 'example')}, whoever holds them"]
    if original.ndim > 2:
        words.append(f"shown from {low:g} to {high:g}")
    if is_fresh(split):
        words.append("one draw of what training draws anew")
    return join_words(*words)


def _find_ends(original: NDArray[np.float32]) -> tuple[float, float]:
    """Return the values shown as black and white, the same for all parties.

    They are those of the original, so that noise does not make everything else grey.
    """
    low, high = float(original.min()), float(original.max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return low, high


def _draw_views(
    figure: Figure,
    views: list[NDArray[np.float32]],
    headings: list[str],
    names: list[str],
    ends: tuple[float, float],
) -> NDArray[Any]:
    """A panel for each example (row) in each view (column). ends: the values shown.

    Returns the axes [n, views].
    """
    down, across = len(names), len(views)
    width = figure.get_figwidth()
    panel_height = width / across * _shape(views[0])
    height = down * panel_height + _TITLES
    figure.set_figheight(min(height, _TALLEST * width))
    panels = figure.subplots(down, across, squeeze=False)
    draw_example = _draw_image if views[0].ndim > 2 else _draw_bars
    for column, view, heading in zip(panels.T, views, headings, strict=True):
        column[0].set_title(heading, fontsize=smallest_font() + 1)
        for ax, x in zip(column, view, strict=True):
            draw_example(ax, x, *ends)
    for ax, name in zip(panels[:, 0], names, strict=True):
        ax.set_ylabel(f"class {name}", fontsize=smallest_font() + 1)
    return panels


def _name_wrong_labels(
    column: NDArray[Any], split: FederatedSplit, data: Data, party: int, rows: Ints
) -> None:
    """Write the label that a party sees below each example whose true one is another."""
    true = data.labels[rows]
    seen = relabel(split, true, party, rows)
    for ax, right, label in zip(column, true.tolist(), seen.tolist(), strict=True):
        if label != right:
            name = shorten_name(data.class_names[label])
            ax.set_xlabel(f"as {name}", fontsize=smallest_font() + 1, color=_WRONG)


def first_of_classes(labels: Ints, n_classes: int, examples: int) -> Ints:
    """Return [n] rows: the first of each of some classes, evenly spread.

    Of all classes and the next rows where there are fewer classes.
    """
    n_shown = min(examples, n_classes)
    evenly = np.linspace(0, n_classes - 1, n_shown)
    classes = evenly.round().astype(np.int64)
    first = [int(np.argmax(labels == k)) for k in classes]
    # Among so many rows enough are left when those above are taken out.
    enough = min(len(labels), examples + n_shown)
    others = np.setdiff1d(np.arange(enough), first)
    more = others[: examples - n_shown]
    return np.array([*first, *more], np.int64)


def _shape(x: NDArray[Any]) -> float:
    """Height over width of a panel."""
    if x.ndim > 2:  # [n, height, width, ...]
        return float(x.shape[1] / x.shape[2])
    return _BARS_SHAPE


def _heading(split: FederatedSplit, party: int) -> str:
    """`party 3`, and what its transforms have of their own: the level of noise, an angle, ..."""
    lines = [f"party {party:,}"]
    names = [name for name, _ in split.recipe.named_transforms]
    for name in names:
        stds = split.columns.get(f"{name}_std")
        if stds is not None:
            lines.append(f"std {stds[party]:.2g}")
    for name in names:
        degrees = split.columns.get(f"{name}_degrees")
        if degrees is not None:
            lines.append(f"turned {degrees[party]:g}°")
        factors = split.columns.get(f"{name}_factor")
        if factors is not None:
            lines.append(f"keeps {factors[party]:.2g}")
        rates = split.columns.get(f"{name}_rate")
        if rates is not None:
            lines.append(f"wrong {rates[party]:.2g}")
        kinds = split.columns.get(f"{name}_kind")
        if kinds is not None:
            lines.append(list(KINDS)[kinds[party]].replace("-", "\n"))
        news = split.columns.get(f"{name}_new")
        if news is not None and news[party]:
            lines.append("never trains")
    for name in names:
        cells = split.columns.get(f"{name}_cell")
        if cells is not None:
            cell = cells[party]
            lines.append(f"cell {cell}" if cell >= 0 else "clean")
    return "\n".join(lines)


def _draw_image(ax: Any, x: NDArray[Any], low: float, high: float) -> None:
    if x.ndim == 3 and x.shape[2] == 3:
        # matplotlib takes no ends for colours: it shows 0 to 1.
        span = max(high - low, 1e-12)
        colours = np.clip((x - low) / span, 0, 1)
        ax.imshow(colours, interpolation="nearest")
    else:
        grey = x.reshape(x.shape[:2])
        ax.imshow(grey, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])


def _draw_bars(ax: Any, x: NDArray[Any], low: float, high: float) -> None:
    """A value for each feature, as one path however many there are."""
    room = max(0.3 * (high - low), 1e-9)
    edges = np.arange(len(x) + 1)
    is_long = len(x) > _VECTORS
    ax.stairs(x, edges, fill=True, color=OKABE_ITO[0], rasterized=is_long)
    ax.set_ylim(low - room, high + room)
    ax.set_xticks([])
    ax.set_yticks([])
