"""Published splits: a folder of small records, by which a file on one's disk is recognised.

One file a split in `records`, in TOML; the folder is the registry.
"""

from .finding import Match, find_published
from .records import PublishedSplit, find_record, list_records, load_records
from .rows import digest_rows

__all__ = [
    "Match",
    "PublishedSplit",
    "digest_rows",
    "find_published",
    "find_record",
    "list_records",
    "load_records",
]
