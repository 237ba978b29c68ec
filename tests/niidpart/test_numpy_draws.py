"""Streams of generators, beside the numpy and the python that are installed.

Bit for bit, floats too: both call the C library of this machine.
"""

import random

import numpy as np
import pytest

from niidpart.arithmetic.numpy_draws.floats import add_as_numpy, add_float32_as_numpy
from niidpart.arithmetic.numpy_draws.legacy import LegacyDraws
from niidpart.arithmetic.numpy_draws.modern import ModernDraws
from niidpart.arithmetic.numpy_draws.pythons import PythonDraws

SEEDS = (0, 42, 2**32 - 1)
SIZES = (1, 2, 7, 100, 1000)
ALPHAS = (0.05, 0.0999, 0.1, 0.5, 0.999, 1.0, 1.7, 100.0)


@pytest.fixture(params=SEEDS)
def seed(request):
    return request.param


def test_orders_of_the_legacy_generator_are_made_of_its_words_as_they_were_when_it_was_frozen(seed):
    """One word a step, cut to as many bits as the place has, and another while it is too large."""
    words = np.random.RandomState(seed)
    draws = LegacyDraws(seed)
    for n in SIZES:
        order = list(range(n))
        for i in range(n - 1, 0, -1):
            mask = (1 << i.bit_length()) - 1
            j = i + 1
            while j > i:
                j = int.from_bytes(words.bytes(4), "little") & mask
            order[i], order[j] = order[j], order[i]
        assert draws.permutation(n).tolist() == order


def test_orders_and_integers_of_the_modern_generator(seed):
    ours, theirs = ModernDraws(seed), np.random.default_rng(seed)
    for n in SIZES:
        assert ours.permutation(n) == theirs.permutation(n).tolist()
        things, same = list(range(n)), list(range(n))
        ours.shuffle(things)
        theirs.shuffle(same)
        assert things == same
        assert ours.below(n) == theirs.integers(n)
        assert ours.uniform() == theirs.random()
        size = min(n, 60)
        assert ours.choose(n, size) == theirs.choice(n, size, replace=False).tolist()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_dirichlet_draws_of_the_modern_generator(alpha, seed):
    ours, theirs = ModernDraws(seed), np.random.default_rng(seed)
    for n in SIZES:
        assert ours.dirichlet(alpha, n).tolist() == theirs.dirichlet(np.full(n, alpha)).tolist()


def test_normals_and_exponentials_of_the_modern_generator(seed):
    ours, theirs = ModernDraws(seed), np.random.default_rng(seed)
    n = 20_000  # some fifty beyond the lowest layer
    assert [ours.normal() for _ in range(n)] == theirs.normal(size=n).tolist()
    assert [ours.exponential() for _ in range(n)] == theirs.standard_exponential(n).tolist()


@pytest.mark.parametrize("seed", [10, 12, 42])  # with floats beyond the layers, and at the end
@pytest.mark.parametrize("n", [1, 4097, 200_000])
def test_many_normals_are_what_one_by_one_gives(n, seed):
    ours, theirs = ModernDraws(seed), np.random.default_rng(seed)
    assert np.array_equal(ours.normals(n), theirs.standard_normal(n))
    assert ours.normals(33).tolist() == theirs.standard_normal(33).tolist()
    assert ours.uniform() == theirs.random()


@pytest.mark.parametrize("seed", [0, 42, 2**32 - 1, 2**40 + 7])
def test_what_pythons_generator_shuffles_and_samples(seed):
    ours, theirs = PythonDraws(seed), random.Random(seed)
    for n in (*SIZES, 3000):
        things, same = list(range(n)), list(range(n))
        ours.shuffle(things)
        theirs.shuffle(same)
        assert things == same
        assert ours.uniform() == theirs.random()
        for size in {1, n // 50, n // 2, n}:
            assert ours.sample(things, size) == theirs.sample(same, size)


def test_sums_are_added_in_numpys_order():
    rng = np.random.default_rng(3)
    for n in (*range(1, 150), 255, 256, 257, 1000, 1025, 10_007):
        values = rng.random(n) * 10.0 ** rng.integers(-9, 9, n)
        assert add_as_numpy(values) == values.sum()
        narrow = values.astype(np.float32)
        if n < 8192 or np.__version__ >= "2":  # numpy 1.26 adds longer ones otherwise
            assert add_float32_as_numpy(narrow) == narrow.sum()
