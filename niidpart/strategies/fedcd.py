"""Replay: the data of FedCD's notebooks, row by row: devices that share examples."""

from typing import Annotated, Literal

import numpy as np

from ..arithmetic.numpy_draws.pythons import PythonDraws
from ..arithmetic.rng import Ints, Stream
from ..errors import UsageError
from ..registry import AtLeast
from . import Rows
from ._devices import DIVISORS
from ._replays import PartyRows, join_parties, list_rows

__all__ = ["fedcd"]

PAPER = "kopparapu2020fedcd"
READING = {"hierarchical": "rough-proportions"}  # by rule: bias times size, rounded down
RULES = {"hierarchical": ("n_train", "n_val", "n_test", "test_rows")}  # options of each rule

_LOW, _HIGH = 0.6, 0.7  # of the fraction that is of a device's own class
_TEST_SHARE = 6  # of CIFAR-10's 60,000 images 10,000 are the test set

Groups = list[tuple[list[int], list[int]]]  # rows of a class, and of the others of its half


def fedcd(
    labels: Ints,
    *,
    n_parties: int = 30,
    rng: Stream,
    seed: int,
    rule: Annotated[Literal["hierarchical"], "Which of its samplers."] = "hierarchical",
    version: Annotated[
        Literal["e774109", "d98016d"],
        "Which commit: of kavyakvk/FedCD, or of jessijzhao/FedCD; they deal alike.",
    ] = "d98016d",
    n_train: Annotated[
        int | None, "Training examples of a device; else 1/12 of the data set.", AtLeast(1)
    ] = None,
    n_val: Annotated[
        int | None, "Validation examples of a device; else a third of n_train.", AtLeast(0)
    ] = None,
    n_test: Annotated[
        int | None, "Test examples of a device; else a tenth of n_train.", AtLeast(0)
    ] = None,
    test_rows: Annotated[
        int | None,
        "The last rows, which are the data set's test set; else a sixth of all.",
        AtLeast(1),
    ] = None,
) -> Rows:
    """Replay of FedCD's notebooks: the rows that their sampler `uniform` gives after
    random.seed(seed); they set no seed. Kopparapu et al., 2020.

    rule: hierarchical. Its other sampler, hypergeometric, draws from a generator that nobody can
    seed; the strategy of that name has its law. Devices draw training and validation examples from
    the training images and test examples from the test images (say --pool), so that a device may
    validate on what it trains on: no part of a split may do that, and the validation examples are
    stored as a draw. With 30 devices and ten classes it is the published code, with others its
    rule. What it draws is drawn again here, so `rng` is not used.

    Returns
    -------
    Rows
        Parts train and test. Draws: bias [P]; validation [P, n_val] rows. Column: archetype [P].

    Raises
    ------
    UsageError
        For fewer examples of a class than a device asks for.
    """
    n_classes = int(labels.max()) + 1
    n_train = len(labels) // DIVISORS["train"] if n_train is None else n_train
    n_val = n_train // DIVISORS["val"] if n_val is None else n_val
    n_test = n_train // DIVISORS["test"] if n_test is None else n_test
    test_rows = len(labels) // _TEST_SHARE if test_rows is None else test_rows
    n_pool = len(labels) - test_rows
    if n_pool < 1:
        raise UsageError(f"test_rows is {test_rows}, which leaves none of {len(labels)} examples")
    draws = PythonDraws(seed)
    archetype = np.arange(n_parties) * n_classes // n_parties
    bias = [_LOW + (_HIGH - _LOW) * draws.uniform() for _ in range(n_parties)]
    kinds = archetype.tolist()
    train_groups = _group_rows(labels[:n_pool], n_classes, 0)
    train = _sample_devices(draws, train_groups, kinds, bias, n_train)
    validation = _sample_devices(draws, train_groups, kinds, bias, n_val)
    test_groups = _group_rows(labels[n_pool:], n_classes, n_pool)
    test = _sample_devices(draws, test_groups, kinds, bias, n_test)
    return Rows(
        {"train": join_parties(train), "test": join_parties(test)},
        {"bias": np.array(bias), "validation": np.array(validation, np.int64)},
        {"archetype": archetype},
    )


def _group_rows(labels: Ints, n_classes: int, first: int) -> Groups:
    """Return for each class its rows, and those of the other classes of its half.

    first: the number of the first row.
    """
    rows = [(held + first).tolist() for held in list_rows(labels)]
    rows += [[] for _ in range(n_classes - len(rows))]
    middle = (n_classes + 1) // 2
    groups = []
    for label in range(n_classes):
        half = range(middle) if label < middle else range(middle, n_classes)
        groups.append(
            (rows[label], [row for other in half if other != label for row in rows[other]])
        )
    return groups


def _sample_devices(
    draws: PythonDraws, groups: Groups, kinds: list[int], bias: list[float], n: int
) -> PartyRows:
    """Return n rows of each device: its fraction of its own class, the rest of its half."""
    held = []
    for kind, fraction in zip(kinds, bias, strict=True):
        own, others = groups[kind]
        n_own = int(n * fraction)
        if n_own > len(own) or n - n_own > len(others):
            raise UsageError(
                f"a device asks for {n_own} examples of class {kind} and {n - n_own} of its half, "
                f"there are {len(own)} and {len(others)}; lower n_train, n_val or n_test"
            )
        rows = draws.sample(own, n_own) + draws.sample(others, n - n_own)
        draws.shuffle(rows)
        held.append(rows)
    return held
