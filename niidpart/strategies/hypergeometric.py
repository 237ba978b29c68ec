"""FedCD's hypergeometric archetypes: devices whose labels centre on another part of the range of classes."""

from math import comb
from typing import Annotated, Literal

import numpy as np

from ..arithmetic.rng import Ints, Stream
from . import Rows
from ._devices import NTest, NTrain, NVal, draw, pools, sizes_of

__all__ = ["hypergeometric_archetypes"]

ARCHETYPES = 6
_RARE = 27.7  # -log of the chance, for one device and class, that a size taken by default does not fit: 1e-12
_BLOCK = 1 << 20  # words drawn at a time; not part of the definition, the stream goes on


def hypergeometric_archetypes(
    labels: Ints,
    *,
    n_parties: int = 30,
    rng: Stream,
    overflow: Annotated[
        Literal["redraw", "drop"],
        "A label beyond the last class is drawn again, or its example left out.",
    ] = "redraw",
    n_train: NTrain = None,
    n_val: NVal = None,
    n_test: NTest = None,
) -> Rows:
    """Devices of 6 archetypes, labels ~ Hypergeom(110, 5 + 20 a, 10); own train, val and test, shared examples. Kopparapu et al., 2020, section 3.3.

    Device i has archetype a = floor(6 i / P). With K classes: Hypergeom(11 K, (5 + 20 a) K / 10, K), so labels 0..K, and there is no class K.
    overflow="redraw" draws until the label is below K; "drop" leaves these examples out, as the authors' code does, and a device of the last
    archetype keeps 38 % of its size. The three parts come from three pools, 4 : 1 : 1 of each class, at a device without replacement, so two
    devices may hold an example. Column: archetype [P].
    """
    n_classes = int(labels.max()) + 1
    archetype = np.arange(n_parties) * ARCHETYPES // n_parties
    laws = [_law(a, n_classes, overflow) for a in range(ARCHETYPES)]
    chances = np.array(
        [[weight / sum(law) for weight in law[:n_classes]] for law in laws]
    )  # [6, K]

    def fits(n: int, of_class: Ints) -> bool:
        mean, variance = n * chances, n * chances * (1 - chances)
        likely = (
            mean + _RARE / 3 + np.sqrt(_RARE * _RARE / 9 + 2 * _RARE * variance)
        )  # Bernstein's bound
        return bool((np.minimum(np.where(chances > 0, likely, 0), n) <= of_class).all())

    pool = pools(labels, rng)
    kept = 1.0 if overflow == "redraw" else float(chances.sum(axis=1).min())
    parts = {}
    for part, (n, limit) in sizes_of(
        {"train": n_train, "val": n_val, "test": n_test}, len(labels), pool, fits, kept
    ).items():
        counts = _counts(n, laws, archetype, n_classes, rng.child(f"{part} labels"))
        parts[part] = draw(counts, part, limit, pool, rng.child(part))
    return Rows(parts, {}, {"archetype": archetype})


def _law(a: int, n_classes: int, overflow: str) -> list[int]:
    """Weights of the labels 0..K-1, or 0..K where those are dropped: exact integers."""
    population, marked = 11 * n_classes, (5 + 20 * a) * n_classes // 10
    return [
        comb(marked, j) * comb(population - marked, n_classes - j)
        for j in range(n_classes + (overflow == "drop"))
    ]


def _counts(n: int, laws: list[list[int]], archetype: Ints, n_classes: int, rng: Stream) -> Ints:
    """[P, K] how often each device drew each label, in n draws."""
    counts = np.zeros((len(archetype), n_classes), np.int64)
    for a, law in enumerate(laws):
        possible = [j for j, weight in enumerate(law) if weight]
        below, total, thresholds = 0, sum(law), []
        for j in possible[:-1]:
            below += law[j]
            thresholds.append((below << 64) // total)
        devices = np.flatnonzero(archetype == a)
        step = max(1, _BLOCK // max(n, 1))
        for start in range(0, len(devices), step):
            some = devices[start : start + step]
            label = np.array(possible)[
                np.searchsorted(
                    np.array(thresholds, np.uint64), rng.words(len(some) * n), side="right"
                )
            ]
            cells = np.repeat(np.arange(len(some)) * (n_classes + 1), n) + label
            counts[some] = np.bincount(cells, minlength=len(some) * (n_classes + 1)).reshape(
                -1, n_classes + 1
            )[:, :n_classes]
    return counts
