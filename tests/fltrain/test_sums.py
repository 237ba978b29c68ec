"""Sums of uploads: exact, so that their order, and who added what, cannot be seen in a single bit."""

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fltrain.engine.native.build import load_library
from fltrain.engine.native.sums import make_add_pair
from fltrain.engine.sums import _BLOCK, Sums, two_sum
from niidpart import UsageError

from ._native import compiled

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


def add_at_once(high, low, value):
    """Knuth's two-sum on whole tensors: (high, low) afterwards."""
    value = value.double()
    total = high + value
    added = total - high
    return total, low + ((high - (total - added)) + (value - added))


# Uploads of many blocks, the last of them short, and of one number.
UPLOADS = {
    "float64": lambda: torch.randn(3, _BLOCK + 5, dtype=torch.float64),
    "float32": lambda: torch.randn(3, _BLOCK + 5),
    "turned": lambda: torch.randn(_BLOCK + 5, 3, dtype=torch.float64).T,
    "one for all": lambda: torch.randn(3, 1, dtype=torch.float64).expand(3, _BLOCK + 5),
    "a number": lambda: torch.randn((), dtype=torch.float64),
    "nothing": lambda: torch.randn(0, 3, dtype=torch.float64),
}


@pytest.fixture(params=["torch", pytest.param("compiled", marks=compiled)])
def add_pair(request, native_cache, monkeypatch):
    if request.param == "torch":
        return two_sum
    monkeypatch.setenv("XDG_CACHE_HOME", str(native_cache))
    return make_add_pair(load_library())


@pytest.mark.parametrize("kind", UPLOADS)
def test_a_pair_in_blocks_or_in_compiled_code_has_the_same_bits(kind, add_pair):
    torch.manual_seed(3)
    value = UPLOADS[kind]()
    high = torch.randn(value.shape, dtype=torch.float64) * 1e3
    low = torch.randn(value.shape, dtype=torch.float64) * 1e-15
    expected = add_at_once(high, low, value)
    add_pair(high, low, value)
    assert torch.equal(high, expected[0])
    assert torch.equal(low, expected[1])


@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (3, 3)])
def test_uploads_of_different_shapes_are_refused_and_no_other_model_is_written(shape, add_pair):
    sums = Sums(4)
    sums.add({"w": torch.ones(3, dtype=torch.float64)}, 0, add_pair)
    with pytest.raises(UsageError, match=r"uploads w of the shape .*, another one of \(3,\)"):
        sums.add({"w": torch.ones(shape, dtype=torch.float64)}, 0, add_pair)
    assert sums.total["w"].tolist() == [[1.0] * 3] + [[0.0] * 3] * 3


def test_a_pair_that_is_no_piece_of_memory_is_summed_in_place():
    pairs = torch.randn(_BLOCK, 3, 2, dtype=torch.float64)
    high, low = pairs[..., 0], pairs[..., 1] * 1e-15
    expected = add_at_once(high.clone(), low, high * 0.3)
    two_sum(high, low, high * 0.3)
    assert torch.equal(pairs[..., 0], expected[0])
    assert torch.equal(low, expected[1])
