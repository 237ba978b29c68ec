"""What numpy's `np.random.seed(seed)` and the functions of `np.random` draw.

numpy has frozen this generator: its streams are the same in every release (NEP 19). So these draws
are its own; drawn again in python an order would take thirty times as long as the code that is
replayed. Logarithms in them come from the machine's C library.
"""

from typing import Any

import numpy as np

from ..exact import Floats
from ..words import Ints


class _NoEntropy(np.random.SeedSequence):
    """What a generator starts from that is seeded at once.

    By itself numpy asks the system for 624 random words first, which takes 60 of the 600
    microseconds of a whole replay. It reads the words one by one: those of a list 20 microseconds
    faster than those of an array.
    """

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return [0] * n_words


class LegacyDraws:
    """What a `np.random.RandomState(seed)` draws.

    Parameters
    ----------
    seed : int
        0..2**32-1.

    Examples
    --------
    >>> draws = LegacyDraws(0)
    >>> draws.permutation(5).tolist()
    [2, 0, 1, 3, 4]
    >>> draws.below(10)
    3
    """

    def __init__(self, seed: int):
        self._random = np.random.RandomState(np.random.MT19937(_NoEntropy(0)))
        self._random.seed(seed)

    def uniform(self) -> float:
        """Return a float in [0, 1), as `uniform()` and `random_sample()`."""
        return self._random.random_sample()

    def below(self, bound: int) -> int:
        """Return an integer 0..bound-1, as `randint(bound)`."""
        return int(self._random.randint(bound))

    def below_each(self, bound: int, n: int) -> Ints:
        """Return n integers 0..bound-1, as `randint(bound, size=n)` and `choice(bound, n)`."""
        return self._random.randint(bound, size=n, dtype=np.int64)

    def shuffle(self, rows: Ints) -> None:
        """Shuffle an array in place, as `shuffle` does a list or an array."""
        self._random.shuffle(rows)

    def permutation(self, n: int) -> Ints:
        """Return an order of 0..n-1, as `permutation(n)`."""
        return self._random.permutation(n)

    def choose(self, n: int, size: int) -> Ints:
        """Return some of 0..n-1, as `choice(n, size, replace=False)`."""
        return self.permutation(n)[:size]

    def dirichlet(self, alpha: float, n: int) -> Floats:
        """Return n proportions, as `dirichlet([alpha] * n)`; NaN where all of them underflow."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._random.dirichlet(np.repeat(alpha, n))

    def lognormals(self, mean: float, sigma: float, n: int) -> Floats:
        """Return n variates, as `lognormal(mean, sigma, n)`."""
        return self._random.lognormal(mean, sigma, n)

    def multinomial(self, n: int, proportions: Floats) -> Ints:
        """Return how many of n fall on each, as `multinomial(n, proportions)`."""
        return self._random.multinomial(n, proportions)

    def powers(self, exponent: float, n: int) -> Floats:
        """Return n variates in 0..1 of density a x**(a-1), as `power(a, n)`."""
        return self._random.power(exponent, n)
