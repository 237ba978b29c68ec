"""What parties' features look like beside each other."""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..errors import UsageError
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
from ._parties import choose_parties

__all__ = ["features"]

Floats = NDArray[np.float64]
_TOGETHER, _PANELS = 4, 16  # up to 4 parties in one panel, up to 16 in panels of their own


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
    sets; here it is the features themselves.
    """
    ids, said = choose_parties(split, parties, len(MARKERS), by="number")
    party, rows = sample_rows(split, ids, sample)
    if len(rows) < 3:
        raise UsageError(f"these parties hold {len(rows)} training examples; at least 3 are needed")
    views = []
    for p in ids:
        mine = rows[party == p]
        views.append(view_features(split, data, int(p), mine).reshape(len(mine), -1))
    x = np.concatenate(views).astype(np.float64)
    xy, axes = _project(x) if method == "pca" else tsne(x)
    of, names = assign_categories(data, ids, party, rows, colour)
    if colour == "party" and _TOGETHER < len(names) <= _PANELS:
        _draw_apart(figure, xy, of, [f"party {name}" for name in names], axes)
    else:
        figure.set_figheight(0.62 * figure.get_figwidth())
        ax = figure.add_subplot()
        _scatter(ax, xy, of, len(names))
        ax.set_xlabel(axes[0])
        ax.set_ylabel(axes[1])
        add_category_key(figure, names, colour, marked=True)
    return join_words(
        said,
        f"{len(rows):,} of {split.train.n:,} training examples",
        "one draw of what training draws anew" if is_fresh(split) else "",
    )


def pca(x: Floats, k: int = 2) -> tuple[Floats, Floats]:
    """Return the principal components of x [n, D], and their shares of the variance.

    ([n, k] coordinates along the k directions of most variance, [k] shares). The largest weight of
    a direction is positive. By the eigenvectors of the smaller of X'X and XX', X the centred x:
    they give the singular vectors, several times faster.
    """
    centred = x - x.mean(0)
    is_wide = centred.shape[0] < centred.shape[1]
    square = centred @ centred.T if is_wide else centred.T @ centred
    values, vectors = np.linalg.eigh(square)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    directions = centred.T @ vectors if is_wide else vectors  # [D, k]
    length = np.linalg.norm(directions, axis=0)
    directions = directions / np.where(length > 0, length, 1)
    largest = np.abs(directions).argmax(0)[None]
    is_negative = np.take_along_axis(directions, largest, 0) < 0
    directions *= np.where(is_negative, -1.0, 1.0)
    lacking = k - len(values)  # of fewer features than k
    share = np.maximum(values, 0) / max(float(np.trace(square)), 1e-300)
    return np.pad(centred @ directions, ((0, 0), (0, lacking))), np.pad(share, (0, lacking))


def tsne(x: Floats) -> tuple[Floats, list[str]]:
    """Return ([n, 2] coordinates of t-SNE after PCA to 50 dimensions, labels of the axes).

    The same with the same scikit-learn.
    """
    try:
        from sklearn.manifold import TSNE
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "t-SNE needs scikit-learn: pip install scikit-learn, or take --method pca",
            name="sklearn",
        ) from error
    reduced = pca(x, min(50, *x.shape))[0]
    perplexity = min(30.0, (len(x) - 1) / 3)
    xy = TSNE(
        n_components=2,
        init="pca" if reduced.shape[1] > 1 else "random",
        perplexity=perplexity,
        random_state=0,
    ).fit_transform(reduced)
    return np.asarray(xy, np.float64), [f"t-SNE 1 (perplexity {perplexity:.0f})", "t-SNE 2"]


def _project(x: Floats) -> tuple[Floats, list[str]]:
    xy, share = pca(x)
    return xy, [f"PC {i + 1} ({100 * s:.0f}% of variance)" for i, s in enumerate(share)]


def _scatter(ax: Any, xy: Floats, of: Ints, n: int) -> None:
    """Drawn in turns, so that no category hides behind another."""
    paint = choose_colours(n)
    turn = np.empty(len(of), np.int64)
    for k in np.unique(of):
        turn[of == k] = np.arange((of == k).sum())
    for layer in np.array_split(np.argsort(turn, kind="stable"), min(10, len(of))):
        for k in np.unique(of[layer]):
            here = layer[of[layer] == k]
            marker = MARKERS[k] if n <= len(MARKERS) else "o"
            ax.scatter(
                *xy[here].T,
                color=paint[k],
                s=12,
                marker=marker,
                linewidth=0,
                alpha=0.75,
                rasterized=True,
            )


def _draw_apart(figure: Figure, xy: Floats, of: Ints, titles: list[str], axes: list[str]) -> None:
    """A panel for each party: its examples before those of all."""
    across = 4 if figure.get_figwidth() > 5 else 2
    down = -(-len(titles) // across)
    figure.set_figheight(0.3 + 0.85 * down * figure.get_figwidth() / across)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for k, ax in enumerate(panels.flat):
        if k >= len(titles):
            ax.set_visible(False)
            continue
        ax.scatter(*xy.T, color="0.85", s=5, linewidth=0, rasterized=True)
        ax.scatter(*xy[of == k].T, color=OKABE_ITO[0], s=8, linewidth=0, alpha=0.8, rasterized=True)
        ax.set_title(titles[k])
        if k + across >= len(titles):
            ax.set_xlabel(axes[0])
            ax.tick_params(axis="x", labelbottom=True)
        if k % across == 0:
            ax.set_ylabel(axes[1])
