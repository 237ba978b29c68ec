"""Which parties go in one file, and which have nothing to put in one."""

from collections.abc import Iterator

import numpy as np

from ..data import Data
from ..features.examples import read_examples
from ..splits.part import Part
from ..splits.split import FederatedSplit

FILE_BYTES = 1 << 26  # bytes of examples that go in one file, unless a party has more
_SHOWN = 10  # parties that an error names


def measure_example(split: FederatedSplit, data: Data) -> int:
    """Return the bytes of one example in memory, with transforms."""
    first = int(np.argmax(split.train.sizes > 0))  # a party that has any
    return int(read_examples(split, data, first, lossy=True).x[:1].nbytes)


def group_parties(part: Part, example_bytes: int) -> Iterator[range]:
    """Yield the parties in order, in runs of at most FILE_BYTES, or of one party."""
    first, held = 0, 0
    for party, size in enumerate(part.sizes.tolist()):
        own = size * example_bytes
        if party > first and held + own > FILE_BYTES:
            yield range(first, party)
            first, held = party, 0
        held += own
    yield range(first, part.n_parties)


def describe_empty_parties(split: FederatedSplit, parts: tuple[str, ...]) -> str:
    """Return "party 3 in train; parties 1, 2 in test" of the parts that hold anything, or ""."""
    described = []
    for name in parts:
        part = split.parts[name]
        empty = np.flatnonzero(part.sizes == 0).tolist()
        if part.n and empty:
            noun = "party" if len(empty) == 1 else "parties"
            more = ", ..." if len(empty) > _SHOWN else ""
            described.append(f"{noun} {', '.join(map(str, empty[:_SHOWN]))}{more} in {name}")
    return "; ".join(described)
