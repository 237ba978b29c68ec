"""Orders of small integers, whichever way of sorting serves their number and range."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from niidpart.arithmetic import sorting
from niidpart.arithmetic.sorting import sort_by_key, sort_pairs
from niidpart.splits.part_making import count_classes, make_part

KINDS = [np.int8, np.int16, np.int32, np.int64]


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 16 places, which pay from two of a key in a block on."""
    monkeypatch.setattr(sorting, "_BLOCK_BITS", 4)
    monkeypatch.setattr(sorting, "_RUN", 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.integers(1, 12), st.integers(1, 200), st.sampled_from(KINDS))
def test_an_order_is_ascending_and_stable(small_blocks, data, n_keys, n, kind):
    found = data.draw(st.lists(st.integers(0, n_keys - 1), min_size=n, max_size=n))
    keys = np.array(found, kind)
    assert np.array_equal(sort_by_key(keys, n_keys), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("n_keys", [1, 2, 1000, 32_768, 32_769, 65_536, 65_537, 1 << 20, 1 << 33])
def test_each_way_of_sorting_gives_the_same_order(n_keys):
    n = (1 << 18) + 12_345
    keys = np.random.default_rng(n_keys).integers(0, n_keys, n)
    keys[:2] = 0, n_keys - 1
    assert np.array_equal(sort_by_key(keys, n_keys), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("lowest", [0, -1], ids=["everybody", "some-nobody"])
def test_a_part_of_owners_has_their_rows_and_classes(lowest):
    n, n_parties, n_classes = (1 << 18) + 999, 50, 7
    rng = np.random.default_rng(0)
    owner, labels = rng.integers(lowest, n_parties, n), rng.integers(0, n_classes, n)
    part = make_part(owner, labels, n_parties, n_classes)
    assert part.indices.dtype == part.counts.dtype == np.int32
    for party in range(n_parties):
        rows = np.flatnonzero(owner == party)
        assert np.array_equal(part.party(party), rows)
        assert part.counts[party].tolist() == np.bincount(labels[rows], minlength=7).tolist()
    again = count_classes(part.indptr, part.indices, labels, n_classes)
    assert np.array_equal(part.counts, again)


@pytest.mark.parametrize(("n_keys", "n_values"), [(3, 50), (9, 1 << 20), (2, 1 << 40)])
def test_pairs_are_sorted_by_key_and_value(n_keys, n_values, small_blocks, monkeypatch):
    for segment in (2, 1 << 40):  # by the values of each key, and by words of both
        monkeypatch.setattr(sorting, "_SEGMENT", segment)
        rng = np.random.default_rng(n_keys)
        keys, values = rng.integers(0, n_keys, 500), rng.integers(0, n_values, 500)
        keys[values % 7 == 0] = 0
        expected = values[np.lexsort((values, keys))]
        assert np.array_equal(sort_pairs(keys, values, n_keys, n_values), expected)
        if n_values < 1 << 31:
            narrow = keys.astype(np.int32), values.astype(np.int32)
            assert np.array_equal(sort_pairs(*narrow, n_keys, n_values), expected)
