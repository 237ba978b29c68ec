"""Tables in parquet files."""

from pathlib import Path

from . import Data
from ._arrow import Choice, data_of
from ._files import beside
from ._parquet import ParquetTable

__all__ = ["parquet"]


def parquet(
    root: str | Path,
    *,
    label: str = "label",
    group: str | None = None,
    features: str | None = None,
    drop: str | None = None,
    test_file: str | None = None,
    test_column: str | None = None,
    size: int | None = None,
    channels: int | None = None,
    checksum: bool = True,
) -> Data:
    """A parquet file, or a folder of them (one table, in the order of their names). root: the file or folder. Needs pyarrow.

    label, group: the columns of classes and of groups. features, drop: columns (a,b,c) to make features of, or to leave out; else the one column of
    encoded images, else all others: numbers give [N, D], lists of one length [N, ...]. test_file: another file in its folder; test_column: the
    column that says 1 (or true, or test) for the rows of the test set. size, channels: of images. checksum: the bytes of the files are part of the
    data's identity, else their names and sizes. Labels are read without the other columns, features when they are asked for.
    """
    path = Path(root)
    files = sorted(path.glob("*.parquet"), key=lambda p: p.name) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise FileNotFoundError(f"there is no parquet file {path}; give the path of a file, or of a folder of *.parquet")
    if test_file is not None and test_column is not None:
        raise ValueError("test_file names another file and test_column a column; give one of the two")
    test = ParquetTable([beside(files[0], test_file, "test_file")]) if test_file else None
    files = [f for f in files if test is None or f != test.files[0]]
    choice = Choice(label, group, features, drop, test_column, size, channels, checksum)
    return data_of(ParquetTable(files), test, choice, files[0].parent)
