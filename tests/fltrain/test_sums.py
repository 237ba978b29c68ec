"""Sums of uploads: exact, so that their order, and who added what, cannot be seen in a single bit."""

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fltrain.engine.sums import Sums

Numbers = st.lists(
    st.integers(-(10**6), 10**6), min_size=1, max_size=40
)  # their thirds lie well within 2^50 of each other


def summed(values, parts=1):
    """The sum of `values`, added to `parts` sums in turn, which are then merged."""
    sums = [Sums(1) for _ in range(parts)]
    for i, v in enumerate(values):
        sums[i % parts].add({"w": torch.tensor([v], dtype=torch.float64)}, 0)
    for other in sums[1:]:
        sums[0].merge(other)
    return float(sums[0].total["w"])


@given(Numbers)
def test_a_sum_is_the_exact_one_rounded_once(values):
    thirds = [v / 3 for v in values]
    assert summed(thirds) == math.fsum(thirds)


@given(Numbers, st.integers(1, 5), st.randoms(use_true_random=False))
def test_neither_order_nor_partition_changes_a_bit(values, parts, shuffle):
    thirds = [v / 3 for v in values]
    once = summed(thirds)
    shuffle.shuffle(thirds)
    assert summed(thirds, parts) == once


def test_a_plain_sum_would_depend_on_the_order():
    values = [1.0, 2.0**-53, 2.0**-53]
    assert sum(values) != sum(reversed(values))
    assert summed(values) == summed(values[::-1]) == sum(reversed(values))


def test_models_and_types_stand_apart_and_empty_trees_stay():
    sums = Sums(3)
    sums.add(
        {"models": {"w": torch.ones(2), "b": torch.ones((), dtype=torch.float64)}, "buffers": {}}, 2
    )
    sums.add(
        {
            "models": {"w": torch.full((2,), 0.5), "b": torch.ones((), dtype=torch.float64)},
            "buffers": {},
        },
        0,
    )
    total = sums.total
    assert total["models"]["w"].tolist() == [[0.5, 0.5], [0.0, 0.0], [1.0, 1.0]]
    assert total["models"]["b"].dtype == torch.float64
    assert total["buffers"] == {}
    assert Sums(3).total == {}


def test_merging_into_an_empty_sum_takes_all_of_the_other():
    full, empty = Sums(2), Sums(2)
    for v in random.Random(0).sample(range(1000), 50):
        full.add({"a": {"b": torch.tensor([v / 7])}, "c": {}}, v % 2)
    empty.merge(full)
    assert torch.equal(empty.total["a"]["b"], full.total["a"]["b"])
    assert empty.total["c"] == {}


def test_what_is_not_finite_stays_not_finite():
    sums = Sums(1)
    sums.add({"w": torch.tensor([math.inf, 1.0, math.nan])}, 0)
    sums.add({"w": torch.tensor([1.0, 1.0, 1.0])}, 0)
    assert sums.total["w"].isfinite().tolist() == [[False, True, False]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64])
def test_uploads_of_any_type_are_summed_in_float64(dtype):
    sums = Sums(1)
    sums.add({"w": torch.tensor([3, 5]).to(dtype)}, 0)
    assert sums.total["w"].dtype == torch.float64
    assert sums.total["w"].tolist() == [[3.0, 5.0]]
