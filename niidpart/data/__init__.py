"""Where labels and features come from: `load` a data set by name, or make one of arrays.

`record` is what a data set is, `loading` how it is found by name, `construction` how it is made of
what is in memory; `readers` read file formats for the sources in `niidpart/sources`.
"""

from ..arithmetic.words import Array
from .columns import escape_names, number_classes, number_groups
from .construction import check_features, from_arrays, from_columns
from .downloads import Download, list_downloads
from .label_loading import stream_labels
from .label_stream import LabelStream
from .loading import SOURCES, DataSource, load, load_with
from .long_tail import make_long_tail
from .pooling import pool_test_set
from .readers.budget import limit_memory
from .record import Data
from .rows import Features, chain_features, resolve_rows

__all__ = [
    "SOURCES",
    "Array",
    "Data",
    "DataSource",
    "Download",
    "Features",
    "LabelStream",
    "chain_features",
    "check_features",
    "escape_names",
    "from_arrays",
    "from_columns",
    "limit_memory",
    "list_downloads",
    "load",
    "load_with",
    "make_long_tail",
    "number_classes",
    "number_groups",
    "pool_test_set",
    "resolve_rows",
    "stream_labels",
]
