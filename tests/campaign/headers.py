"""Split files whose objects have headers that lie, their checksums made to fit.

A header says how the values of a data set are stored, and the HDF5 library believes it.
"""

import random
from pathlib import Path

from .chance import overwrite
from .outcome import Outcome
from .splits.bases import Base, make_bases
from .splits.checksums import Span, refit
from .splits.damage import Mutant
from .splits.judge import Judge

SIGNATURE = b"OHDR"
LEAST = 40  # bytes of a header that say something


class Headers:
    """The good files and the judge."""

    def __init__(self, folder: Path):
        self.bases = make_bases(folder)
        self.path = folder / "mutant.h5"
        self.judge = Judge(self.path, self.bases)

    def examine(self, number: int) -> Outcome:
        """What `check`, `read` and `open` say of the mutant of this number."""
        rng = random.Random(number)
        base = rng.choices(self.bases, weights=[1 / len(base.arrays) for base in self.bases])[0]
        mutant = Mutant("lie_in_header", base, lie_in_header(rng, base), is_fitted=True)
        outcome = Outcome(mutant.kind)
        self.judge.read(outcome, mutant)
        return outcome


def lie_in_header(rng: random.Random, base: Base) -> bytes:
    """Bytes of one header, but for its signature and the zeros that it ends with."""
    raw = bytearray(base.whole)
    headers = [span for span in base.structures if raw[span.start :].startswith(SIGNATURE)]
    chosen: Span = rng.choice(headers)
    said = raw[chosen.start : chosen.stop].rstrip(b"\0")
    stop = chosen.start + max(len(said), LEAST)
    for _ in range(rng.choice([1, 1, 2, 3, 5])):
        overwrite(rng, raw, chosen.start + len(SIGNATURE), stop)
    refit(raw, [chosen], [])
    return bytes(raw)


def prepare(folder: Path) -> Headers:
    return Headers(folder)
