"""Ranges of options, stated once in the annotation, where checks, help and tests read them.

`mu: Annotated[float, "Weight of the pull; 0 is FedAvg.", AtLeast(0)] = 0.01`
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Range(Protocol):
    """One bound of a number. Several of them in one annotation hold together."""

    def allows(self, value: float) -> bool:
        """Return whether the value keeps to the bound."""
        ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class AtLeast:
    """The value is `low` or more."""

    low: float

    def allows(self, value: float) -> bool:
        return value >= self.low

    def __str__(self) -> str:
        return f"at least {_spell(self.low)}"


@dataclass(frozen=True)
class Above:
    """The value is more than `low`."""

    low: float

    def allows(self, value: float) -> bool:
        return value > self.low

    def __str__(self) -> str:
        return f"above {_spell(self.low)}"


@dataclass(frozen=True)
class AtMost:
    """The value is `high` or less."""

    high: float

    def allows(self, value: float) -> bool:
        return value <= self.high

    def __str__(self) -> str:
        return f"at most {_spell(self.high)}"


@dataclass(frozen=True)
class Below:
    """The value is less than `high`."""

    high: float

    def allows(self, value: float) -> bool:
        return value < self.high

    def __str__(self) -> str:
        return f"below {_spell(self.high)}"


def describe_ranges(ranges: Sequence[Range]) -> str:
    """Return the ranges in words, `at least 0 and below 1`; "" where there are none."""
    return " and ".join(map(str, ranges))


def _spell(bound: float) -> str:
    """Return a bound in few characters: 1e+09 and not 1000000000.0; whole numbers in full."""
    return f"{bound:g}" if isinstance(bound, float) else str(bound)
