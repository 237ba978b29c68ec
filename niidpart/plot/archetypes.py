"""Kinds of parties: what each kind holds."""

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..registry import did_you_mean
from ..splits.split import FederatedSplit
from ..wording import count_noun
from ._look import (
    OKABE_ITO,
    Figure,
    choose_evenly,
    choose_labelled,
    fit_row_inches,
    join_words,
    label_classes,
    shorten_name,
    smallest_font,
)
from ._media import (
    choose_grey,
    choose_ink,
)
from ._parties import choose_parties

__all__ = ["archetypes"]

_PANELS, _CLASSES = 12, 30  # beyond these an image shows more
_LETTER, _GAP = 0.09, 0.06  # inches of a letter of a label, and between two labels
_PER_INCH = 200  # columns of an image that print and screen can show
_MARGIN = 1.9  # inches beside the image: class names, colour bar


def archetypes(
    split: FederatedSplit,
    figure: Figure,
    parties: Ints | None,
    *,
    column: Annotated[
        str, "What divides the parties: `archetype` of FedCD's strategies, or `group`."
    ] = "archetype",
) -> str:
    """The shares of the classes at the parties of each archetype.

    Kopparapu et al., FedCD, 2020, Figure 3.

    A column of the split divides the parties by its values. A bar is the share among all examples
    of the archetype's parties, its whisker the lowest and the highest share at one of them.
    """
    values = _require_column(split, column)
    ids, said = choose_parties(split, parties, split.n_parties)
    kinds, of = np.unique(values[ids], return_inverse=True)
    counts = split.train.counts[ids]
    pooled = pooled_shares(counts, of, len(kinds))
    names = split.source.class_names
    what = ""
    if len(kinds) > _PANELS or len(names) > _CLASSES:
        what = _draw_image(figure, pooled, kinds, column, names)
    else:
        titles = [f"{column} {kind}" for kind in kinds]
        _draw_panels(figure, pooled, counts, of, titles, names)
        if len(kinds) < len(ids):
            what = (
                "bars: all parties of one kind together; whiskers: lowest and highest of one party"
            )
    n_parties = count_noun(len(ids), "party")
    n_kinds = count_noun(len(kinds), "kind")
    return join_words(said, f"{n_parties} of {n_kinds}", what)


def _require_column(split: FederatedSplit, column: str) -> NDArray[Any]:
    if column in split.columns:
        return split.columns[column]
    have = list(split.columns)
    there = "it has no columns"
    if have:
        there = did_you_mean(column, have)
    raise UsageError(
        f"the split has no column {column!r} that divides its parties; {there} "
        "(hierarchical and hypergeometric write 'archetype')"
    )


def pooled_shares(counts: NDArray[Any], of: Ints, n_kinds: int) -> NDArray[np.float64]:
    """Return [A, K] shares of the classes among all examples of each kind of party.

    counts: [P, K]. of: [P] the kind of each party, 0..A-1.
    """
    total = np.zeros((n_kinds, counts.shape[1]))
    np.add.at(total, of, counts)  # unlike total[of] += counts, it adds up rows of one kind
    return _to_shares(total)


def _to_shares(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return each row [K] over its sum; zeros of a row that holds nothing."""
    sums = counts.sum(1, keepdims=True)
    shares: NDArray[np.float64] = counts / np.maximum(sums, 1)
    return shares


def _draw_panels(
    figure: Figure,
    pooled: NDArray[np.float64],
    counts: NDArray[Any],
    of: Ints,
    titles: list[str],
    names: tuple[str, ...],
) -> None:
    own = _to_shares(counts)  # [P, K]
    n = len(pooled)
    width = figure.get_figwidth()
    across = min(n, _count_across(n, width))
    down = math.ceil(n / across)
    height = 0.5 + down * 0.75 * width / max(across, 3)  # one or two panels are no taller
    figure.set_figheight(min(height, 1.3 * width))
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    labels = [shorten_name(name) for name in names]
    longest = max(len(label) for label in labels)
    label_width = _LETTER * longest + _GAP
    room = int(width / across / label_width)  # labels that a panel has room for
    for a, ax in enumerate(panels.flat):
        if a >= n:
            ax.set_visible(False)
            continue
        _draw_panel(ax, pooled[a], own[of == a], labels, room)
        ax.set_title(titles[a])
        ax.tick_params(axis="x", length=0, labelbottom=a + across >= n)
    highest = max(own.max(), pooled.max())
    panels[0, 0].set_ylim(0, min(1.02, 1.08 * highest))
    lowest_panels = panels.flat[max(n - across, 0) : n]  # those with nothing below
    for ax in lowest_panels:
        ax.set_xlabel("class")
    for ax in panels[:, 0]:
        ax.set_ylabel("share")


def _count_across(n: int, width: float) -> int:
    """Panels in a row: so many that the last row is not nearly empty."""
    if width < 5:
        return 3
    if n in (4, 7, 8) or n > 9:
        return 4
    return 3


def _draw_panel(
    ax: Any,
    share: NDArray[np.float64],
    own: NDArray[np.float64],
    labels: list[str],
    room: int,
) -> None:
    """Bars of the shares [K], and whiskers over those [parties, K] of each party."""
    classes = range(len(share))
    ax.bar(classes, share, color=OKABE_ITO[4], width=0.85)
    if len(own) > 1:
        ax.vlines(classes, own.min(0), own.max(0), color=choose_ink(), linewidth=0.8)
    shown = list(choose_labelled(len(labels), room))
    ax.set_xticks(shown, [labels[k] for k in shown], fontsize=smallest_font())
    ax.grid(axis="y", color=choose_grey(0.9), linewidth=0.5)
    ax.set_axisbelow(True)


def _draw_image(
    figure: Figure,
    pooled: NDArray[np.float64],
    kinds: NDArray[Any],
    column: str,
    names: tuple[str, ...],
) -> str:
    width = figure.get_figwidth() - _MARGIN
    at = choose_evenly(len(kinds), int(_PER_INCH * width))
    inches = fit_row_inches(figure, len(names))
    figure.set_figheight(inches + 0.6)
    ax = figure.add_subplot()
    image = ax.imshow(pooled[at].T, cmap="cividis", vmin=0, aspect="auto", interpolation="nearest")
    shown = list(choose_labelled(len(at), int(2 * width)))
    labels = [shorten_name(str(kind)) for kind in kinds[at[shown]]]
    ax.set_xticks(shown, labels)
    ax.set_xlabel(column)
    label_classes(ax.yaxis, names, inches)
    ax.set_ylabel("class")
    bar = figure.colorbar(image, ax=ax, pad=0.02, aspect=30)
    bar.set_label("share of training examples")
    if len(at) < len(kinds):
        return f"{len(at):,} of them, evenly"
    return ""
