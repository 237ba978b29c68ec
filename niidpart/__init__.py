"""Reproducible federated splits: make, measure, draw, verify.

Needs numpy, scipy and h5py; never torch. The names below are loaded when first used, so that help
and shell completion wait for none of the three. So are the packages in here.
"""

import importlib
import pkgutil
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .auditing.auditing import Audit, audit
    from .checking.differences import Difference, diff
    from .checking.verification import Verdict, verify
    from .citing.citation import Citation, cite
    from .data import Data, from_arrays, load, stream_labels
    from .data.of_split import open_data
    from .data.tabular import from_table
    from .data.treatment.looking import TableLook, look
    from .errors import FileFault, UsageError
    from .features.relabelling import relabel
    from .features.skewness import FeatureSkew, feature_skew
    from .features.transforming import transform
    from .heterogeneity import Skew
    from .hub import pull, push
    from .interop.exporting import export
    from .interop.import_door import import_
    from .interop.one_party import to_hf
    from .making.completion import compose
    from .making.derivation import derive, make
    from .making.tuning import tune
    from .splitfile.faults import Fault, SplitError
    from .splitfile.opened import OpenedSplit, open
    from .splitfile.reading import check, read
    from .splitfile.writing import to_bytes, write
    from .splits.dealing import measure_skew
    from .splits.part import Part
    from .splits.recipe import Recipe, Source, Transform
    from .splits.split import FederatedSplit
    from .splits.view import PartView, SplitView
    from .streaming.making import make_large

_MODULES = {
    "Audit": "niidpart.auditing.auditing",
    "Citation": "niidpart.citing.citation",
    "Data": "niidpart.data",
    "Difference": "niidpart.checking.differences",
    "Fault": "niidpart.splitfile.faults",
    "FeatureSkew": "niidpart.features.skewness",
    "FederatedSplit": "niidpart.splits.split",
    "FileFault": "niidpart.errors",
    "OpenedSplit": "niidpart.splitfile.opened",
    "Part": "niidpart.splits.part",
    "PartView": "niidpart.splits.view",
    "Recipe": "niidpart.splits.recipe",
    "Skew": "niidpart.heterogeneity",
    "Source": "niidpart.splits.recipe",
    "SplitError": "niidpart.splitfile.faults",
    "SplitView": "niidpart.splits.view",
    "TableLook": "niidpart.data.treatment.looking",
    "Transform": "niidpart.splits.recipe",
    "UsageError": "niidpart.errors",
    "Verdict": "niidpart.checking.verification",
    "audit": "niidpart.auditing.auditing",
    "check": "niidpart.splitfile.reading",
    "cite": "niidpart.citing.citation",
    "compose": "niidpart.making.completion",
    "derive": "niidpart.making.derivation",
    "diff": "niidpart.checking.differences",
    "export": "niidpart.interop.exporting",
    "feature_skew": "niidpart.features.skewness",
    "from_arrays": "niidpart.data",
    "from_table": "niidpart.data.tabular",
    "import_": "niidpart.interop.import_door",
    "load": "niidpart.data",
    "look": "niidpart.data.treatment.looking",
    "make": "niidpart.making.derivation",
    "make_large": "niidpart.streaming.making",
    "measure_skew": "niidpart.splits.dealing",
    "open": "niidpart.splitfile.opened",
    "open_data": "niidpart.data.of_split",
    "pull": "niidpart.hub",
    "push": "niidpart.hub",
    "read": "niidpart.splitfile.reading",
    "relabel": "niidpart.features.relabelling",
    "stream_labels": "niidpart.data",
    "to_bytes": "niidpart.splitfile.writing",
    "to_hf": "niidpart.interop.one_party",
    "transform": "niidpart.features.transforming",
    "tune": "niidpart.making.tuning",
    "verify": "niidpart.checking.verification",
    "write": "niidpart.splitfile.writing",
}

__version__ = version("niidpart")

__all__ = [
    "Audit",
    "Citation",
    "Data",
    "Difference",
    "Fault",
    "FeatureSkew",
    "FederatedSplit",
    "FileFault",
    "OpenedSplit",
    "Part",
    "PartView",
    "Recipe",
    "Skew",
    "Source",
    "SplitError",
    "SplitView",
    "TableLook",
    "Transform",
    "UsageError",
    "Verdict",
    "__version__",
    "audit",
    "check",
    "cite",
    "compose",
    "derive",
    "diff",
    "export",
    "feature_skew",
    "from_arrays",
    "from_table",
    "import_",
    "load",
    "look",
    "make",
    "make_large",
    "measure_skew",
    "open",
    "open_data",
    "pull",
    "push",
    "read",
    "relabel",
    "stream_labels",
    "to_bytes",
    "to_hf",
    "transform",
    "tune",
    "verify",
    "write",
]


if not TYPE_CHECKING:  # so that mypy knows the names above and no others

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            found = getattr(importlib.import_module(_MODULES[name]), name)
            globals()[name] = found  # what is asked for again is there
            return found
        if name not in _list_rooms():
            raise AttributeError(f"module 'niidpart' has no attribute {name!r}")
        return importlib.import_module(f"niidpart.{name}")


def _list_rooms() -> list[str]:
    """Return the packages and modules in here: `niidpart.NAME` needs no import of its own."""
    return [module.name for module in pkgutil.iter_modules(__path__)]


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_list_rooms()})
