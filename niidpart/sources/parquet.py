"""Tables in parquet files."""

from pathlib import Path

from ..data import Data
from ..data.readers.arrow import ColumnChoice, load_tables
from ..data.readers.files import TestFile, find_companion
from ..data.readers.images import Channels, Checksum, Size
from ..data.readers.parquet_table import ParquetTable
from ..data.readers.table import Drop, FeatureColumns, Group, Label, TestColumn
from ..errors import UsageError

__all__ = ["parquet"]


def parquet(
    root: str | Path,
    *,
    label: Label = "label",
    group: Group = None,
    features: FeatureColumns = None,
    drop: Drop = None,
    test_file: TestFile = None,
    test_column: TestColumn = None,
    size: Size = None,
    channels: Channels = None,
    checksum: Checksum = True,
) -> Data:
    """A parquet file, or a folder of them (one table, in the order of their names). root: the file or folder. Needs pyarrow.

    Features are made of the one column of encoded images, else of all that are not used otherwise, unless `features` or `drop` says which: numbers
    give [N, D], lists of one length [N, ...]. Labels are read without the other columns, features when they are asked for.
    """
    path = Path(root)
    files = sorted(path.glob("*.parquet"), key=lambda p: p.name) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise FileNotFoundError(
            f"there is no parquet file {path}; give the path of a file, or of a folder of *.parquet"
        )
    if test_file is not None and test_column is not None:
        raise UsageError(
            "test_file names another file and test_column a column; give one of the two"
        )
    test = ParquetTable([find_companion(files[0], test_file, "test_file")]) if test_file else None
    files = [f for f in files if test is None or f != test.files[0]]
    choice = ColumnChoice(label, group, features, drop, test_column, size, channels, checksum)
    return load_tables(ParquetTable(files), test, choice, files[0].parent)
