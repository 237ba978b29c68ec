"""Feature skew: the same examples as several parties see them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..errors import UsageError
from ..features.transforming import name_transforms
from ..splits.split import FederatedSplit
from ._features import is_fresh, read_features, view_features
from ._look import OKABE_ITO, Figure, format_count, shorten_name, smallest_font
from ._parties import choose_parties

__all__ = ["noise"]


def noise(
    split: FederatedSplit, figure: Figure, parties: Ints | None, data: Data, *, examples: int = 3
) -> str:
    """The same examples as several parties see them, whoever holds them, and without transforms. Li et al., ICDE 2022, Figure 5.

    examples: how many, the first of classes spread evenly. Images are shown as such, other features as a bar for each.
    """
    if not split.recipe.transforms:
        raise UsageError(
            "this split has no transform, so all parties see the same; make one with --noise SIGMA"
        )
    if not 1 <= examples <= 20:
        raise UsageError(f"examples is {examples}; it must be in 1..20")
    ids, said = choose_parties(split, parties, 7 if figure.get_figwidth() > 5 else 4, by="number")
    if len(ids) > 20:
        raise UsageError(f"{len(ids)} parties were asked for; 20 beside each other can be seen")
    rows = first_of_classes(data.labels, len(data.class_names), examples)
    views = [
        read_features(data, rows),
        *(view_features(split, data, int(p), rows) for p in ids),
    ]  # [1 + S] of [n, ...]
    image = views[0].ndim > 2
    height = figure.get_figwidth() / len(views) * len(rows) * (_shape(views[0])) + 0.35
    figure.set_figheight(min(height, 1.3 * figure.get_figwidth()))
    panels = figure.subplots(len(rows), len(views), squeeze=False)
    low, high = float(views[0].min()), float(views[0].max())
    low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
    for column, (view, heading) in enumerate(
        zip(views, ["as it is", *(_heading(split, int(p)) for p in ids)], strict=True)
    ):
        panels[0, column].set_title(heading, fontsize=smallest_font() + 1)
        for ax, x in zip(panels[:, column], view, strict=True):
            (_image if image else _bars)(ax, x, low, high)
    for ax, row in zip(panels[:, 0], rows, strict=True):
        ax.set_ylabel(
            f"class {shorten_name(data.class_names[data.labels[row]])}",
            fontsize=smallest_font() + 1,
        )
    words = [
        said,
        f"the same {format_count(len(rows), 'example')}, whoever holds them",
        f"shown from {low:g} to {high:g}" if image else "",
    ]
    words += ["one draw of what training draws anew"] if is_fresh(split) else []
    return "; ".join(w for w in words if w)


def first_of_classes(labels: Ints, n_classes: int, examples: int) -> Ints:
    """[n] rows: the first of each of some classes, evenly spread; of all classes and the next rows where there are fewer classes."""
    classes = np.linspace(0, n_classes - 1, min(examples, n_classes)).round().astype(np.int64)
    first = [int(np.argmax(labels == k)) for k in classes]
    more = np.setdiff1d(np.arange(min(len(labels), examples + len(first))), first)[
        : examples - len(first)
    ]
    return np.array([*first, *more], np.int64)


def _shape(x: NDArray[Any]) -> float:
    """Height over width of a panel."""
    return float(x.shape[1] / x.shape[2]) if x.ndim > 2 else 0.8


def _heading(split: FederatedSplit, party: int) -> str:
    """`party 3`, and what its transforms have of their own: the level of noise, its place."""
    own = {name: split.columns[name][party] for name in split.columns}
    names = [name for name, _ in name_transforms(split.recipe)]
    said = [f"std {own[f'{name}_std']:.2g}" for name in names if f"{name}_std" in own]
    said += [
        "clean" if own[f"{name}_cell"] < 0 else f"cell {own[f'{name}_cell']}"
        for name in names
        if f"{name}_cell" in own
    ]
    return "\n".join([f"party {party:,}", *said])


def _image(ax: Any, x: NDArray[Any], low: float, high: float) -> None:
    if x.ndim == 3 and x.shape[2] == 3:
        ax.imshow(np.clip((x - low) / max(high - low, 1e-12), 0, 1), interpolation="nearest")
    else:
        ax.imshow(x.reshape(x.shape[:2]), cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])


def _bars(ax: Any, x: NDArray[Any], low: float, high: float) -> None:
    """A value for each feature, as one path however many there are."""
    room = max(0.3 * (high - low), 1e-9)
    ax.stairs(x, np.arange(len(x) + 1), fill=True, color=OKABE_ITO[0], rasterized=len(x) > 500)
    ax.set_ylim(low - room, high + room)
    ax.set_xticks([])
    ax.set_yticks([])
