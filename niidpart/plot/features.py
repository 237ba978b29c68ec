"""What parties' features look like beside each other."""

import math
from typing import Annotated, Any, Literal

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints
from ..data import Data
from ..errors import UsageError
from ..extras import advise_on_missing
from ..registry import AtLeast, AtMost
from ..splits.split import FederatedSplit
from ._features import assign_categories, is_fresh, sample_rows, view_features
from ._look import (
    MARKERS,
    OKABE_ITO,
    Figure,
    add_category_key,
    choose_colours,
    join_words,
)
from ._media import (
    choose_grey,
)
from ._parties import choose_parties

__all__ = ["features"]

_TOGETHER, _PANELS = 4, 16  # up to 4 parties in one panel, up to 16 in panels of their own
_LAYERS = 10
_WIDE = 5  # inches: wider is a figure over both columns of a paper


def features(
    split: FederatedSplit,
    figure: Figure,
    parties: Ints | None,
    data: Data,
    *,
    method: Annotated[
        Literal["pca", "tsne"], "How they come to two dimensions; tsne needs scikit-learn."
    ] = "pca",
    colour: Annotated[Literal["party", "class"], "What the colours tell apart."] = "party",
    sample: Annotated[
        int,
        "Training examples, as many of each party, evenly along its rows.",
        AtLeast(3),
        AtMost(20_000),
    ] = 1000,
) -> str:
    """Features as parties see them, in two dimensions by PCA or t-SNE.

    Li et al., ICDE 2022, Figure 3b. The paper shows t-SNE of what a trained model makes of the data
    sets, which `fltrain features` writes as a data set; of others it is the features themselves.
    """
    ids, said = choose_parties(split, parties, len(MARKERS), by="number")
    party, rows = sample_rows(split, ids, sample)
    if len(rows) < 3:
        raise UsageError(f"these parties hold {len(rows)} training examples; at least 3 are needed")
    views = []
    for p in ids.tolist():
        mine = rows[party == p]
        view = view_features(split, data, p, mine)
        views.append(view.reshape(len(mine), -1))
    x = np.concatenate(views).astype(np.float64)  # [n, D]
    if method == "pca":
        xy, axes = _project(x)
    else:
        xy, axes = tsne(x)
    of, names = assign_categories(data, ids, party, rows, colour)
    if colour == "party" and _TOGETHER < len(names) <= _PANELS:
        titles = [f"party {name}" for name in names]
        _draw_apart(figure, xy, of, titles, axes)
    else:
        figure.set_figheight(0.62 * figure.get_figwidth())
        ax = figure.add_subplot()
        _scatter(ax, xy, of, len(names))
        ax.set_xlabel(axes[0])
        ax.set_ylabel(axes[1])
        add_category_key(figure, names, colour, marked=True)
    words = [said, f"{len(rows):,} of {split.train.n:,} training examples"]
    if is_fresh(split):
        words.append("one draw of what training draws anew")
    return join_words(*words)


def pca(x: Floats, k: int = 2) -> tuple[Floats, Floats]:
    """Return the principal components of x [n, D], and their shares of the variance.

    ([n, k] coordinates along the k directions of most variance, [k] shares). The largest weight of
    a direction is positive. By the eigenvectors of the smaller of X'X and XX', X the centred x:
    they give the singular vectors, several times faster.
    """
    n, D = x.shape
    X = x - x.mean(0)
    is_wide = n < D
    square = X @ X.T if is_wide else X.T @ X
    values, vectors = np.linalg.eigh(square)
    # They rise: the last k are the largest, and are turned to the front.
    values = values[::-1][:k]
    vectors = vectors[:, ::-1][:, :k]
    directions = X.T @ vectors if is_wide else vectors  # [D, k]
    length = np.linalg.norm(directions, axis=0)
    directions = directions / np.where(length > 0, length, 1)
    # The sign of a direction is free, and libraries differ in it.
    largest = np.abs(directions).argmax(0)[None]
    weight = np.take_along_axis(directions, largest, 0)
    directions *= np.where(weight < 0, -1.0, 1.0)
    variance = max(float(np.trace(square)), 1e-300)  # of n; above 0 where all examples are equal
    share = np.maximum(values, 0) / variance
    lacking = k - len(values)  # of fewer features than k
    xy = np.pad(X @ directions, ((0, 0), (0, lacking)))
    return xy, np.pad(share, (0, lacking))


def tsne(x: Floats) -> tuple[Floats, list[str]]:
    """Return ([n, 2] coordinates of t-SNE after PCA to 50 dimensions, labels of the axes).

    The same with the same scikit-learn.
    """
    try:
        from sklearn.manifold import TSNE
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"t-SNE needs scikit-learn: {advise_on_missing('sklearn')}, or take --method pca",
            name="sklearn",
        ) from error
    # 50 dimensions and perplexity 30 are the defaults of van der Maaten's own program. A perplexity
    # is about a number of neighbours: a third of the examples at most.
    n_components = min(50, *x.shape)
    reduced, _ = pca(x, n_components)
    perplexity = min(30.0, (len(x) - 1) / 3)
    embedding = TSNE(
        n_components=2,
        init="pca" if n_components > 1 else "random",
        perplexity=perplexity,
        random_state=0,
    )
    xy = np.asarray(embedding.fit_transform(reduced), np.float64)
    return xy, [f"t-SNE 1 (perplexity {perplexity:.0f})", "t-SNE 2"]


def _project(x: Floats) -> tuple[Floats, list[str]]:
    """Return ([n, 2] coordinates of PCA, labels of the axes)."""
    xy, share = pca(x)
    axes = []
    for i, s in enumerate(share):
        axes.append(f"PC {i + 1} ({100 * s:.0f}% of variance)")
    return xy, axes


def _scatter(ax: Any, xy: Floats, of: Ints, n: int) -> None:
    """Drawn in turns, so that no category hides behind another."""
    paint = choose_colours(n)
    # The first of each category come before the second of each. They are drawn in a few layers,
    # since a call for each point would be slow.
    turn = np.empty(len(of), np.int64)
    for k in np.unique(of):
        mine = np.flatnonzero(of == k)
        turn[mine] = np.arange(len(mine))
    in_turns = np.argsort(turn, kind="stable")
    for layer in np.array_split(in_turns, min(_LAYERS, len(of))):
        for k in np.unique(of[layer]):
            here = layer[of[layer] == k]
            marker = MARKERS[k] if n <= len(MARKERS) else "o"
            horizontal, vertical = xy[here].T
            ax.scatter(
                horizontal,
                vertical,
                color=paint[k],
                s=12,
                marker=marker,
                linewidth=0,
                alpha=0.75,
                rasterized=True,
            )


def _draw_apart(
    figure: Figure,
    xy: Floats,
    of: Ints,
    titles: list[str],
    axes: list[str],
) -> None:
    """A panel for each party: its examples before those of all."""
    width = figure.get_figwidth()
    across = 4 if width > _WIDE else 2
    down = math.ceil(len(titles) / across)
    panel_height = 0.85 * width / across
    figure.set_figheight(0.3 + down * panel_height)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for k, ax in enumerate(panels.flat):
        if k >= len(titles):
            ax.set_visible(False)
            continue
        mine = xy[of == k]
        style = {"linewidth": 0, "rasterized": True}
        ax.scatter(xy[:, 0], xy[:, 1], color=choose_grey(0.85), s=5, **style)
        ax.scatter(mine[:, 0], mine[:, 1], color=OKABE_ITO[0], s=8, alpha=0.8, **style)
        ax.set_title(titles[k])
        if k + across >= len(titles):
            ax.set_xlabel(axes[0])
            ax.tick_params(axis="x", labelbottom=True)
        if k % across == 0:
            ax.set_ylabel(axes[1])
