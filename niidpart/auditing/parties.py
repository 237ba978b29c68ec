"""Parties that hold nothing, and sizes that say how somebody's code dealt."""

from collections.abc import Iterator

import numpy as np

from ..arithmetic.exact import Floats
from ..arithmetic.rng import Ints
from ..wording import count_noun
from .findings import Finding, name_some
from .subject import AuditSubject

_LEAST_PARTIES = 5  # of which one can stand out
_SURE = 6.0  # standard deviations of a rank correlation: one of a billion by chance


def find_party_faults(subject: AuditSubject) -> Iterator[Finding]:
    """Yield what is odd about the parties."""
    sizes = subject.sizes
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        some, named = name_some(empty)
        yield Finding(
            "empty-party",
            "note",
            f"{len(empty)} of {count_noun(len(sizes), 'party')} hold nothing: {named}",
            len(empty),
            some,
        )
    yield from _find_remainder(sizes)
    if not subject.has_recipe:
        yield from _find_trends(subject)


def _find_remainder(sizes: Ints) -> Iterator[Finding]:
    """Yield that the last party took what was left: all others have one size."""
    if len(sizes) < _LEAST_PARTIES:
        return
    first, last = sizes[:-1], int(sizes[-1])
    size = int(first[0])
    if (first == size).all() and abs(last - size) > 1:
        more = last - size
        yield Finding(
            "last-party",
            "note",
            f"the last party holds {last:,} rows and each other one {size:,}: it took what was "
            f"left, {abs(more):,} {'more' if more > 0 else 'fewer'}",
            1,
            (len(sizes) - 1,),
        )


def _find_trends(subject: AuditSubject) -> Iterator[Finding]:
    """Yield that size or skew goes with the party's number, as no exchangeable rule makes it."""
    sizes = subject.sizes
    measured = {"size": sizes.astype(np.float64)}
    if subject.counts is not None:
        shares = subject.counts / np.maximum(sizes, 1)[:, np.newaxis]
        measured["share of its classes"] = np.square(shares).sum(axis=1)
    for what, values in measured.items():
        deviations = _correlate_with_number(values)
        if abs(deviations) > _SURE:
            way = "grows" if deviations > 0 else "falls"
            yield Finding(
                "order",
                "note",
                f"the {what} of a party {way} with its number ({abs(deviations):.0f} standard "
                "deviations): parties are sorted, or later ones got what earlier ones left",
                len(sizes),
            )


def _rank(values: Floats) -> Floats:
    """Return [P] the rank of each value; equal ones have the mean of theirs."""
    _, places, times = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(times) - (times - 1) / 2
    of_each: Floats = ranks[places]
    return of_each


def _correlate_with_number(values: Floats) -> float:
    """Return the rank correlation of values [P] with 0..P-1, in standard deviations."""
    P = len(values)
    ranks, numbers = _rank(values), np.arange(P)
    spread = ranks.std() * numbers.std()
    if P < _LEAST_PARTIES or not spread:
        return 0.0
    products = (ranks - ranks.mean()) * (numbers - numbers.mean())
    return float(products.mean() / spread * np.sqrt(P - 1))
