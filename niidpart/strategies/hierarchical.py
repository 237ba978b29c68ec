"""FedCD's hierarchical archetypes: devices that like one class of their half of the classes."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from . import Rows
from ._devices import NTest, NTrain, NVal, draw, pools, sizes_of

__all__ = ["hierarchical_archetypes"]


def hierarchical_archetypes(
    labels: Ints,
    *,
    n_parties: int = 30,
    rng: Stream,
    bias_low: Annotated[
        float, "Least fraction of a device's examples that is of its own class, in 0..1."
    ] = 0.6,
    bias_high: Annotated[
        float, "Largest fraction of a device's examples that is of its own class, bias_low to 1."
    ] = 0.7,
    n_train: NTrain = None,
    n_val: NVal = None,
    n_test: NTest = None,
) -> Rows:
    """Devices of K archetypes in two halves, each with its own train, val and test; they share examples. Kopparapu et al., 2020 (FedCD), section 3.2.

    The archetypes are the classes; device i has archetype floor(i * K / P). A fraction b ~ U(bias_low, bias_high) of its examples is of the
    class of its archetype (rounded down), the rest in equal numbers of the other classes of the same half, 0..ceil(K/2)-1 or the others; who
    gets one more is drawn. The three parts come from three pools, 4 : 1 : 1 of each class, at a device without replacement, so two
    devices may hold an example. Column: archetype [P]. Draws: bias [P].
    """
    if not 0 <= bias_low <= bias_high <= 1:
        raise UsageError(
            f"the bias is drawn from {bias_low} to {bias_high}; both must be in 0..1, the lower one first"
        )
    n_classes = int(labels.max()) + 1
    if n_classes < 2:
        raise UsageError("hierarchical needs at least 2 classes, one in each half")
    archetype = np.arange(n_parties) * n_classes // n_parties
    bias = rng.draw("bias", lambda s: bias_low + (bias_high - bias_low) * s.uniform(n_parties))
    half = np.arange(n_classes) < (n_classes + 1) // 2
    siblings = (half == half[archetype][:, None]) & (
        np.arange(n_classes) != archetype[:, None]
    )  # [P, K]
    smallest_half = min(int(half.sum()), int((~half).sum()))

    def fits(n: int, of_class: Ints) -> bool:
        own, rest = _own(np.array([bias_high]), n)[0], n - _own(np.array([bias_low]), n)[0]
        if smallest_half == 1:
            return n <= int(of_class.min())
        return max(int(own), -(-int(rest) // (smallest_half - 1))) <= int(of_class.min())

    pool = pools(labels, rng)
    parts = {}
    for part, (n, limit) in sizes_of(
        {"train": n_train, "val": n_val, "test": n_test}, len(labels), pool, fits
    ).items():
        counts = _counts(n, bias, archetype, siblings, rng.child(f"{part} counts"))
        parts[part] = draw(counts, part, limit, pool, rng.child(part))
    return Rows(parts, {"bias": bias}, {"archetype": archetype})


def _own(bias: Floats, n: int) -> Ints:
    return np.floor(bias * n).astype(np.int64)


def _counts(
    n: int, bias: Floats, archetype: Ints, siblings: NDArray[np.bool_], rng: Stream
) -> Ints:
    """[P, K] examples of each class; each row sums to n."""
    P, K = siblings.shape
    how_many = siblings.sum(axis=1)
    own = np.where(how_many > 0, _own(bias, n), n)  # a class alone in its half
    each, more = np.divmod(n - own, np.maximum(how_many, 1))
    low = (K - 1).bit_length()
    words = rng.words(P * K).reshape(P, K) >> np.uint64(low + 1) << np.uint64(low) | np.arange(
        K, dtype=np.uint64
    )
    words[~siblings] = np.uint64((1 << 64) - 1)  # behind all siblings
    place = np.argsort(np.argsort(words, axis=1, kind="stable"), axis=1, kind="stable")
    counts = np.where(siblings, each[:, None] + (place < more[:, None]), 0)
    counts[np.arange(P), archetype] = own
    return counts
