"""What a dry run counts on where a data set is not at hand: the published sizes of it. No torch.

A stand-in has as many examples, classes and groups as the data set, all classes of one size, and
features that are zeros. So it is known how many cells a plan has and what they take before anything
is fetched; nothing is ever trained on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

import niidpart
from niidpart.arithmetic.rng import Ints
from niidpart.data import SOURCES, Data, Features, make_long_tail
from niidpart.data.loading import drop_steps
from niidpart.splits.part import Part
from niidpart.splits.recipe import Source

_MARK = "stand-in"  # the revision of one
_FEW = 64  # examples of a party, where a step is counted
_OWN_PART = 0.2  # of them in a part that no fraction of the recipe asks for


@dataclass(frozen=True)
class PublishedSize:
    """How large a data set is. shape: of an example; whole numbers where it is an image."""

    n: int
    n_test: int
    shape: tuple[int, ...]
    n_classes: int = 10
    n_groups: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the features."""
        return np.dtype(np.uint8 if len(self.shape) > 1 else np.float32)

    @property
    def example_bytes(self) -> int:
        """Of the features of one example."""
        return prod(self.shape) * self.dtype.itemsize


# As docs/data.md has them; of FEMNIST the digits by their writers.
_SIZES = {
    "mnist": PublishedSize(60_000, 10_000, (28, 28)),
    "fmnist": PublishedSize(60_000, 10_000, (28, 28)),
    "cifar10": PublishedSize(50_000, 10_000, (32, 32, 3)),
    "cifar100": PublishedSize(50_000, 10_000, (32, 32, 3), 100),
    "svhn": PublishedSize(73_257, 26_032, (32, 32, 3)),
    "femnist": PublishedSize(341_873, 40_832, (28, 28), n_groups=3_383),
    "adult": PublishedSize(32_561, 16_281, (123,), 2),
    "rcv1": PublishedSize(15_181, 5_061, (47_236,), 2),
    "covtype": PublishedSize(435_759, 145_253, (54,), 2),
    # MNIST and SVHN, which the papers take of it.
    "digits-sources": PublishedSize(133_257, 36_032, (28, 28, 3), n_groups=2),
}


def load_or_stand_in(name: str, root: str | None = None, **params: Any) -> Data:
    """Return a data set, or its stand-in where it is not at hand and its size is known."""
    is_sought = root is not None or not SOURCES.record(name).needs_root
    if is_sought or name not in _SIZES:
        try:
            return niidpart.load(name, root, **params)
        except FileNotFoundError:
            if name not in _SIZES:
                raise
    return make_stand_in(name, params)


def make_stand_in(name: str, params: Mapping[str, Any]) -> Data:
    """Return the stand-in of a data set whose size is known. params: options of its source."""
    own = drop_steps(dict(params))
    size = _SIZES[name]
    stored = dict(SOURCES.complete(name, own))
    if params.get("pool"):
        zeros = _make_zeros(name, size, size.n + size.n_test, 0, stored | {"pool": True})
    else:
        zeros = _make_zeros(name, size, size.n, size.n_test, stored)
    factor = params.get("long_tail")
    if factor is None:
        return zeros
    return replace(make_long_tail(zeros, factor), params=zeros.params | {"long_tail": factor})


def is_stand_in(source: Source) -> bool:
    """Return whether a split is of a stand-in."""
    return source.revision == _MARK


def make_few(split: niidpart.FederatedSplit) -> tuple[niidpart.FederatedSplit, Data]:
    """Return a small split of as many parties, and its data: enough to count a step on."""
    recipe, source = split.recipe, split.source
    size = _SIZES[source.name]
    n = _FEW * recipe.n_parties
    few = _make_zeros(source.name, size, n, min(source.n_test, size.n_classes), source.params)
    small = niidpart.make(
        few,
        strategy="homo",
        n_parties=recipe.n_parties,
        val=recipe.val or _guess_share(split.val),
        test=recipe.test or _guess_share(split.test),
        transforms=[(one.name, dict(one.params)) for one in recipe.transforms],
    )
    # whom a run asks for by a column of its split (--models-by) it finds there too
    return replace(small, columns=split.columns), few


def _guess_share(part: Part) -> float:
    """Return a share for a part that the strategy itself made, as FedCD's do; 0 for none."""
    return _OWN_PART if part.n else 0.0


def measure_rest(split: niidpart.FederatedSplit) -> int:
    """Return the bytes of all examples of a split's data set, which `make_few` left out."""
    source = split.source
    return (source.n + source.n_test) * _SIZES[source.name].example_bytes


def _make_zeros(
    name: str, size: PublishedSize, n: int, n_test: int, params: Mapping[str, Any]
) -> Data:
    groups = np.arange(n) * size.n_groups // n if size.n_groups else None
    return Data(
        labels=_deal_classes(n, size.n_classes),
        class_names=tuple(str(one) for one in range(size.n_classes)),
        features=_read_zeros(n, size),
        groups=groups,
        test_labels=_deal_classes(n_test, size.n_classes) if n_test else None,
        test_features=_read_zeros(n_test, size) if n_test else None,
        revision=_MARK,
        name=name,
        params=dict(params),
    )


def _deal_classes(n: int, n_classes: int) -> Ints:
    return np.arange(n, dtype=np.int64) % n_classes


def _read_zeros(n: int, size: PublishedSize) -> Features:
    """Return the function that gives the features of rows; n examples of zeros take no memory."""
    zeros = np.broadcast_to(np.zeros((), size.dtype), (n, *size.shape))
    return lambda rows: zeros[rows].copy()
