"""Reproducible federated splits: make, measure, draw, verify. Needs numpy, scipy and h5py; never torch."""

from .check import check
from .data import Data, from_arrays, load
from .guard import Fault, SplitError
from .h5 import read, to_bytes, write
from .make import compose, derive, make, transform
from .recipe import Recipe, Source, Transform
from .split import FederatedSplit, Part
from .verify import Verdict, verify

__all__ = [
    "Data",
    "Fault",
    "FederatedSplit",
    "Part",
    "Recipe",
    "Source",
    "SplitError",
    "Transform",
    "Verdict",
    "check",
    "compose",
    "derive",
    "from_arrays",
    "load",
    "make",
    "read",
    "to_bytes",
    "transform",
    "verify",
    "write",
]
