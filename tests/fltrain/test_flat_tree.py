"""Trees whose leaves lie in one row: the same numbers as any other tree."""

import copy
import pickle

import pytest
import torch

from fltrain import tree
from fltrain.engine.sums import Sums
from fltrain.flat_tree import FlatTree, RowLayout, leave_out, map_numbers

LIKE = {"w": torch.zeros(2, 3), "b": torch.zeros(3), "s": torch.zeros(())}
LAYOUT = RowLayout.describe(LIKE, ["b", "s", "w"])  # not in the order of the tree


def make(seed: int) -> FlatTree:
    row = torch.randn(10, generator=torch.Generator().manual_seed(seed))
    return FlatTree(row, LAYOUT)


def is_equal(a: tree.Tree, b: tree.Tree) -> bool:
    return list(a) == list(b) and all(map(torch.equal, tree.leaves(a), tree.leaves(b)))


def test_leaves_stand_in_the_order_of_the_tree_and_of_the_row() -> None:
    flat = make(0)
    assert [(name, leaf.shape) for name, leaf in flat.items()] == [
        (name, leaf.shape) for name, leaf in LIKE.items()
    ]
    assert flat.row is not None
    assert torch.equal(torch.cat([flat[name].flatten() for name in "bsw"]), flat.row)


def test_numbers_are_mapped_as_leaf_by_leaf() -> None:
    flat = make(1)
    nested = {"models": flat, "more": {"x": torch.ones(2)}}
    mapped = map_numbers(lambda leaf: leaf.double() * 0.3, nested)
    assert isinstance(mapped["models"], FlatTree)
    leaf_by_leaf = tree.map(lambda leaf: leaf.double() * 0.3, nested)
    assert is_equal(mapped["models"], leaf_by_leaf["models"])
    assert is_equal(mapped["more"], leaf_by_leaf["more"])


def test_a_tree_with_another_leaf_is_no_row() -> None:
    flat = make(2)
    flat["b"] = torch.ones(3)
    assert flat.row is None
    assert torch.equal(map_numbers(lambda leaf: 2 * leaf, flat)["b"], torch.full((3,), 2.0))


@pytest.mark.parametrize(
    "copied",
    [
        *(copy.copy, copy.deepcopy, dict, lambda t: pickle.loads(pickle.dumps(t))),
        *(
            lambda t: t.copy(),
            lambda t: t | {},
            lambda t: {} | t,
            lambda t: {**t},
            lambda t: dict(**t),
        ),
    ],
)
def test_copies_are_plain_trees(copied) -> None:
    flat = make(3)  # its leaves are made by who copies it
    other = copied(flat)
    assert type(other) is dict
    assert is_equal(other, flat)


@pytest.mark.parametrize(
    "ask",
    [
        *(len, list, bool, repr, lambda t: "w" in t, lambda t: t.get("w"), lambda t: t["w"]),
        *(lambda t: t.pop("w"), lambda t: t == dict(make(5)).keys(), lambda t: [*reversed(t)]),
    ],
)
def test_a_tree_answers_though_its_leaves_have_not_been_made(ask) -> None:
    assert str(ask(make(5))) == str(ask(dict(make(5))))


@pytest.mark.parametrize(
    ("names", "is_row"),
    [
        ((), True),
        (("b",), True),
        (("w",), True),
        (("b", "s"), True),
        (("s",), False),
        ("bsw", False),
    ],
)
def test_leaves_are_left_out_and_the_others_lie_in_one_row_where_they_can(names, is_row) -> None:
    flat = make(4)
    rest, plain = leave_out(flat, names), leave_out(dict(flat), names)
    assert is_equal(rest, plain)
    assert list(plain) == [name for name in flat if name not in names]
    assert isinstance(rest, FlatTree) == is_row
    doubled = map_numbers(lambda leaf: 2 * leaf, rest)
    assert is_equal(doubled, tree.map(lambda leaf: 2 * leaf, plain))


@pytest.mark.parametrize("mixed", [False, True])
def test_sums_of_rows_are_those_of_leaves(mixed: bool) -> None:
    """To the last bit, for several models, and where some uploads lie in no row."""
    rows, leaves = Sums(2), Sums(2)
    for seed in range(6):
        upload = {"models": map_numbers(torch.Tensor.double, make(seed)), "buffers": {}}
        plain = {"models": dict(upload["models"]), "buffers": {}}
        rows.add(plain if mixed and seed % 2 else upload, seed % 2)
        leaves.add(plain, seed % 2)
    assert is_equal(rows.high, leaves.high)
    assert is_equal(rows.low, leaves.low)
    assert is_equal(rows.total["models"], leaves.total["models"])
    assert rows.total["buffers"] == {}
    other = Sums(2)
    other.add({"models": dict(make(9)), "buffers": {}}, 1)
    for sums in (rows, leaves):
        sums.merge(other)
    assert is_equal(rows.total["models"], leaves.total["models"])
