"""Feature skew: the same examples as several parties see them."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..errors import UsageError
from ..features.transforming import name_transforms
from ..registry import AtLeast, AtMost
from ..splits.split import FederatedSplit
from ._features import is_fresh, read_features, view_features
from ._look import OKABE_ITO, Figure, format_count, join_words, shorten_name, smallest_font
from ._parties import choose_parties

__all__ = ["noise"]

_MOST = 20  # examples, and parties: more could not be seen


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
    """
    if not split.recipe.transforms:
        advice = "make one with --noise SIGMA"
        raise UsageError(f"this split has no transform, so all parties see the same; {advice}")
    limit = 7 if figure.get_figwidth() > 5 else 4
    ids, said = choose_parties(split, parties, limit, by="number")
    if len(ids) > _MOST:
        raise UsageError(
            f"{len(ids)} parties were asked for; {_MOST} beside each other can be seen"
        )
    rows = first_of_classes(data.labels, len(data.class_names), examples)
    views = [read_features(data, rows)]  # [1 + S] of [n, ...]
    views += [view_features(split, data, int(party), rows) for party in ids]
    headings = ["as it is", *(_heading(split, int(party)) for party in ids)]
    names = [shorten_name(data.class_names[data.labels[row]]) for row in rows]
    low, high = float(views[0].min()), float(views[0].max())
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    is_image = views[0].ndim > 2
    _draw_views(figure, views, headings, names, (low, high))
    return join_words(
        said,
        f"the same {format_count(len(rows), 'example')}, whoever holds them",
        f"shown from {low:g} to {high:g}" if is_image else "",
        "one draw of what training draws anew" if is_fresh(split) else "",
    )


def _draw_views(
    figure: Figure,
    views: list[NDArray[np.float32]],
    headings: list[str],
    names: list[str],
    ends: tuple[float, float],
) -> None:
    """A panel for each example (row) in each view (column). ends: the values shown."""
    width, down, across = figure.get_figwidth(), len(names), len(views)
    height = width / across * down * _shape(views[0]) + 0.35
    figure.set_figheight(min(height, 1.3 * width))
    panels = figure.subplots(down, across, squeeze=False)
    draw_example = _draw_image if views[0].ndim > 2 else _draw_bars
    for column, view, heading in zip(panels.T, views, headings, strict=True):
        column[0].set_title(heading, fontsize=smallest_font() + 1)
        for ax, x in zip(column, view, strict=True):
            draw_example(ax, x, *ends)
    for ax, name in zip(panels[:, 0], names, strict=True):
        ax.set_ylabel(f"class {name}", fontsize=smallest_font() + 1)


def first_of_classes(labels: Ints, n_classes: int, examples: int) -> Ints:
    """Return [n] rows: the first of each of some classes, evenly spread.

    Of all classes and the next rows where there are fewer classes.
    """
    classes = np.linspace(0, n_classes - 1, min(examples, n_classes)).round().astype(np.int64)
    first = [int(np.argmax(labels == k)) for k in classes]
    next_rows = np.arange(min(len(labels), examples + len(first)))
    more = np.setdiff1d(next_rows, first)[: examples - len(first)]
    return np.array([*first, *more], np.int64)


def _shape(x: NDArray[Any]) -> float:
    """Height over width of a panel."""
    return float(x.shape[1] / x.shape[2]) if x.ndim > 2 else 0.8


def _heading(split: FederatedSplit, party: int) -> str:
    """`party 3`, and what its transforms have of their own: the level of noise, its place."""
    lines = [f"party {party:,}"]
    names = [name for name, _ in name_transforms(split.recipe)]
    for name in names:
        if f"{name}_std" in split.columns:
            lines.append(f"std {split.columns[f'{name}_std'][party]:.2g}")
    for name in names:
        if f"{name}_cell" in split.columns:
            cell = split.columns[f"{name}_cell"][party]
            lines.append("clean" if cell < 0 else f"cell {cell}")
    return "\n".join(lines)


def _draw_image(ax: Any, x: NDArray[Any], low: float, high: float) -> None:
    if x.ndim == 3 and x.shape[2] == 3:
        colours = np.clip((x - low) / max(high - low, 1e-12), 0, 1)
        ax.imshow(colours, interpolation="nearest")
    else:
        ax.imshow(x.reshape(x.shape[:2]), cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])


def _draw_bars(ax: Any, x: NDArray[Any], low: float, high: float) -> None:
    """A value for each feature, as one path however many there are."""
    room = max(0.3 * (high - low), 1e-9)
    ax.stairs(x, np.arange(len(x) + 1), fill=True, color=OKABE_ITO[0], rasterized=len(x) > 500)
    ax.set_ylim(low - room, high + room)
    ax.set_xticks([])
    ax.set_yticks([])
