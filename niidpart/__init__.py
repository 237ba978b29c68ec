"""Reproducible federated splits: make, measure, draw, verify. Needs numpy, scipy and h5py; never torch."""

from .checking.differences import Difference, diff
from .checking.verification import Verdict, verify
from .data import Data, from_arrays, load
from .errors import FileFault, UsageError
from .features.distances import FeatureSkew, feature_skew
from .features.transforming import transform
from .heterogeneity import Skew
from .hub import pull, push
from .interop.exporting import export
from .interop.importing import import_
from .making.completion import compose
from .making.derivation import derive, make
from .making.tuning import tune
from .splitfile.check import check, read
from .splitfile.faults import Fault, SplitError
from .splitfile.h5 import to_bytes, write
from .splitfile.opened import OpenedSplit, open
from .splits.recipe import Recipe, Source, Transform
from .splits.split import FederatedSplit, Part

__all__ = [
    "Data",
    "Difference",
    "Fault",
    "FeatureSkew",
    "FederatedSplit",
    "FileFault",
    "OpenedSplit",
    "Part",
    "Recipe",
    "Skew",
    "Source",
    "SplitError",
    "Transform",
    "UsageError",
    "Verdict",
    "check",
    "compose",
    "derive",
    "diff",
    "export",
    "feature_skew",
    "from_arrays",
    "import_",
    "load",
    "make",
    "open",
    "pull",
    "push",
    "read",
    "to_bytes",
    "transform",
    "tune",
    "verify",
    "write",
]
