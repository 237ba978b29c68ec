"""Kinds of parties: what each kind holds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..registry import did_you_mean
from ..splits.split import FederatedSplit
from ._look import (
    OKABE_ITO,
    Figure,
    choose_labelled,
    fit_row_inches,
    format_count,
    label_classes,
    shorten_name,
    smallest_font,
)
from ._parties import choose_parties

__all__ = ["archetypes"]

_PANELS, _CLASSES = 12, 30  # beyond these an image shows more


def archetypes(
    split: FederatedSplit, figure: Figure, parties: Ints | None, *, column: str = "archetype"
) -> str:
    """The shares of the classes at the parties of each archetype. Kopparapu et al., FedCD, 2020, Figure 3.

    column: what divides the parties: one value a party in the split, `archetype` of FedCD's strategies, or `group`. A bar is the share among
    all examples of the archetype's parties, its whisker the lowest and the highest share at one of them.
    """
    if column not in split.columns:
        have = list(split.columns)
        there = did_you_mean(column, have) if have else "it has no columns"
        raise UsageError(
            f"the split has no column {column!r} that divides its parties; {there} (hierarchical and hypergeometric write 'archetype')"
        )
    ids, said = choose_parties(split, parties, split.n_parties)
    values = split.columns[column][ids]
    kinds, of = np.unique(values, return_inverse=True)
    counts = split.train.counts[ids]
    pooled = pooled_shares(counts, of, len(kinds))
    names = split.source.class_names
    if len(kinds) <= _PANELS and len(names) <= _CLASSES:
        _panels(figure, pooled, counts, of, [f"{column} {kind}" for kind in kinds], names)
        what = (
            "bars: all parties of one kind together; whiskers: lowest and highest of one party"
            if len(kinds) < len(ids)
            else ""
        )
    else:
        what = _image(figure, pooled, kinds, column, names)
    return "; ".join(
        w
        for w in (
            said,
            f"{format_count(len(ids), 'party')} of {format_count(len(kinds), 'kind')}",
            what,
        )
        if w
    )


def pooled_shares(counts: NDArray[Any], of: Ints, n_kinds: int) -> NDArray[np.float64]:
    """[A, K] shares of the classes among all examples of each kind of party. counts: [P, K]; of: [P] 0..A-1."""
    total = np.zeros((n_kinds, counts.shape[1]))
    np.add.at(total, of, counts)
    total /= np.maximum(total.sum(1, keepdims=True), 1)
    return total


def _panels(
    figure: Figure, pooled: Any, counts: Any, of: Ints, titles: list[str], names: tuple[str, ...]
) -> None:
    own = counts / np.maximum(counts.sum(1, keepdims=True), 1)  # [P, K]
    across = min(
        len(pooled),
        3 if figure.get_figwidth() < 5 else 4 if len(pooled) in (4, 7, 8) or len(pooled) > 9 else 3,
    )
    down = -(-len(pooled) // across)
    figure.set_figheight(
        min(0.5 + down * 0.75 * figure.get_figwidth() / max(across, 3), 1.3 * figure.get_figwidth())
    )
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    room = int(
        figure.get_figwidth() / across / (0.09 * max(len(shorten_name(n)) for n in names) + 0.06)
    )
    for a, ax in enumerate(panels.flat):
        if a >= len(pooled):
            ax.set_visible(False)
            continue
        mine, share = own[of == a], pooled[a]
        ax.bar(range(len(share)), share, color=OKABE_ITO[4], width=0.85)
        if len(mine) > 1:
            ax.vlines(range(len(share)), mine.min(0), mine.max(0), color="black", linewidth=0.8)
        ax.set_title(titles[a])
        shown = list(choose_labelled(len(names), room))
        ax.set_xticks(shown, [shorten_name(names[k]) for k in shown], fontsize=smallest_font())
        ax.tick_params(axis="x", length=0, labelbottom=a + across >= len(pooled))
        ax.grid(axis="y", color="0.9", linewidth=0.5)
        ax.set_axisbelow(True)
    panels[0, 0].set_ylim(0, min(1.02, 1.08 * max(own.max(), pooled.max())))
    for ax in panels.flat[max(len(pooled) - across, 0) : len(pooled)]:
        ax.set_xlabel("class")
    for ax in panels[:, 0]:
        ax.set_ylabel("share")


def _image(figure: Figure, pooled: Any, kinds: Any, column: str, names: tuple[str, ...]) -> str:
    width = figure.get_figwidth()
    limit = int(200 * (width - 1.9))
    at = (
        np.arange(len(kinds))
        if len(kinds) <= limit
        else np.linspace(0, len(kinds) - 1, limit).round().astype(np.int64)
    )
    inches = fit_row_inches(figure, len(names))
    figure.set_figheight(inches + 0.6)
    ax = figure.add_subplot()
    image = ax.imshow(pooled[at].T, cmap="cividis", vmin=0, aspect="auto", interpolation="nearest")
    shown = list(choose_labelled(len(at), int(2 * (width - 1.9))))
    ax.set_xticks(shown, [shorten_name(str(kinds[at[i]])) for i in shown])
    ax.set_xlabel(column)
    label_classes(ax.yaxis, names, inches)
    ax.set_ylabel("class")
    figure.colorbar(image, ax=ax, pad=0.02, aspect=30).set_label("share of training examples")
    return f"{len(at):,} of them, evenly" if len(at) < len(kinds) else ""
