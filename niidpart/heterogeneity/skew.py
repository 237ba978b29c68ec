"""What is known about the skew of a split: `Skew`, and each number of it, a `Measure`."""

from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from ..arithmetic.exact import Floats
from ..splits.recipe import JSON
from .concentration import LOWEST
from .concentration import VERSION as MAP_BETA_VERSION


@dataclass(frozen=True)
class Measure:
    """One number that says how skewed a split is.

    name, version: of the file in niidpart/heterogeneity/measures. form: "to-global" (each party against all together), "pairwise", or ""
    where there is only one. raw: the mean as its definition has it. value: the same on the scale where an IID split without end is 0 and
    parties of one class each (of sizes: one party that holds everything) are 1. iid: the value that an IID deal of the same sizes has (of
    sizes: an even deal). corrected: (value - iid) / (1 - iid), 0 where iid is 1. low, high: 95 % interval of `corrected`; None for sizes,
    which are exact. average: over what the mean is. n: over how many; sampled: whether these are a sample of all there are.
    """

    name: str
    form: str
    version: int
    raw: float
    value: float
    corrected: float
    low: float | None
    high: float | None
    iid: float
    average: str
    n: int
    sampled: bool


@dataclass(frozen=True, eq=False)
class Skew:
    """How skewed a split is. Made by `measure`.

    map_beta: [P], for each party; 1e-6 for one without examples. map_beta_overall: for all parties together. measures: () where nobody
    holds anything. n_empty: parties without examples, which are left out of everything but the measures of sizes.
    """

    map_beta: Floats
    map_beta_overall: float
    measures: tuple[Measure, ...]
    n_empty: int

    def __post_init__(self) -> None:
        self.map_beta.setflags(write=False)

    @property
    def beta_range(self) -> tuple[float, float, float]:
        """Smallest, median and largest beta over the parties that hold something; the lowest there is where none does."""
        held = np.sort(self.map_beta)[
            self.n_empty :
        ]  # a party without examples has the lowest beta there is
        if not held.size:
            return LOWEST, LOWEST, LOWEST
        return float(held[0]), float(np.median(held)), float(held[-1])

    def to_json(self) -> JSON:
        """All but the array of betas. Every number is finite."""
        low, middle, high = self.beta_range
        beta = {
            "version": MAP_BETA_VERSION,
            "likelihood": "multinomial",
            "kappa": 1,
            "overall": self.map_beta_overall,
        }
        return {
            "map_beta": beta | {"min": low, "median": middle, "max": high},
            "n_empty": self.n_empty,
            "measures": [asdict(m) for m in self.measures],
        }

    @classmethod
    def from_json(cls, value: JSON, map_beta: Floats) -> Self:
        """What `to_json` gave, and the array that is not in it. KeyError or TypeError where the fields are others."""
        return cls(
            map_beta,
            value["map_beta"]["overall"],
            tuple(Measure(**m) for m in value["measures"]),
            value["n_empty"],
        )
