"""What was asked for (`Recipe`) and of which data (`Source`): frozen, with one canonical JSON form that digests are made of."""

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ..errors import UsageError
from ..registry import coerce

JSON = dict[str, Any]
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")  # of anything that a split file holds
IMPORTED = "imported"  # the strategy of a split whose rows another program chose: no file of niidpart/strategies, so nothing derives it


@dataclass(frozen=True)
class Transform:
    """What a party's features look like: a file of `niidpart/transforms` and all its options."""

    name: str
    params: JSON


@dataclass(frozen=True)
class Recipe:
    """A split is a pure function of this and of the labels.

    val, test: the fractions of each party's examples that its validation and test parts get.
    """

    strategy: str
    params: JSON
    n_parties: int
    seed: int = 0
    transforms: tuple[Transform, ...] = ()
    val: float = 0.0
    test: float = 0.0

    def __post_init__(self) -> None:
        for name, kind in (("n_parties", int), ("seed", int), ("val", float), ("test", float)):
            object.__setattr__(self, name, coerce(name, getattr(self, name), kind))
        if self.n_parties < 1:
            raise UsageError(f"n_parties is {self.n_parties}; there must be at least 1")
        if not 0 <= self.seed < 1 << 64:
            raise UsageError(f"seed is {self.seed}; it must be in 0..2**64-1")
        for name, fraction in (("val", self.val), ("test", self.test)):
            if not 0 <= fraction < 1:
                raise UsageError(
                    f"{name} is {fraction}; it is a fraction of each party's examples, at least 0 and below 1"
                )
        if self.val + self.test >= 1:
            raise UsageError(
                f"val {self.val} and test {self.test} leave nothing to train on; their sum must be below 1"
            )

    def to_json(self) -> JSON:
        return asdict(self) | {"transforms": [asdict(t) for t in self.transforms]}

    @classmethod
    def from_json(cls, value: JSON) -> Self:
        return cls(**value | {"transforms": tuple(Transform(**t) for t in value["transforms"])})


@dataclass(frozen=True)
class Source:
    """Which data a split is of.

    name, params: the file of `niidpart/sources` that loads it and its options; "array" for labels that were handed over.
    labels_sha256: of the class ids 0..K-1 [n] as little-endian int64. content_sha256: of features and test set, "" where only labels were seen.
    """

    name: str
    n: int
    n_test: int
    class_names: tuple[str, ...]
    labels_sha256: str
    content_sha256: str = ""
    revision: str = ""
    params: JSON = field(default_factory=dict)

    def to_json(self) -> JSON:
        return asdict(self) | {"class_names": list(self.class_names)}

    @classmethod
    def from_json(cls, value: JSON) -> Self:
        return cls(**value | {"class_names": tuple(value["class_names"])})
