"""Which published split a file is: by its bytes, or by who holds which rows."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from ..auditing.subject import AuditSubject, describe_split, is_split_file, read_published
from ..data.readers.files import open_packed
from ..errors import require_path
from ..splitfile.reading import read
from .records import PublishedSplit, load_records
from .rows import digest_parts, find_by_digests

_PIECE = 1 << 20  # bytes that are read at a time
_MOST = 1 << 30  # bytes, unpacked, of a file that is compared byte by byte


class Match(NamedTuple):
    """A published split that a file is.

    Parameters
    ----------
    record : PublishedSplit
    by : {"bytes", "rows"}
        By what it was recognised.
    """

    record: PublishedSplit
    by: str


def find_published(path: str | Path, **options: Any) -> list[Match]:
    """Return the published splits that a file is.

    Parameters
    ----------
    path : str or Path
        A split file, or a file or folder of another program.
    **options
        The format's own, `trust_pickle=True`. A file that is published byte for byte needs none.

    Returns
    -------
    list of Match
        Empty where the file is none that is known. Several papers may have published one split.

    Raises
    ------
    UsageError, FileFault
        The file is of no known format, or cannot be read.

    Examples
    --------
    >>> import niidpart, tempfile
    >>> split = niidpart.make([0, 1] * 50, "homo", n_parties=2)
    >>> find_published(niidpart.write(split, tempfile.mkdtemp() + "/split.h5"))
    []
    """
    require_path("the file", path)
    path = Path(path)
    records = load_records().values()
    if path.is_file():
        found = _digest_file(path)
        same = [one for one in records if found and found in one.file_digests]
        if same:
            return [Match(record, "bytes") for record in same]
    held = _read_rows(path, options)
    digests = digest_parts(held.parts, held.n_parties)
    return [Match(record, "rows") for record in find_by_digests(digests)]


def _read_rows(path: Path, options: dict[str, Any]) -> AuditSubject:
    if path.is_file() and is_split_file(path):
        return describe_split(str(path), read(path), None)
    return read_published(path, None, None, options)


def _digest_file(path: Path) -> str:
    """Return the sha256 of a file's bytes, unpacked where it is packed; "" of one that is huge."""
    state, n_read = hashlib.sha256(), 0
    with open_packed(path) as file:
        while block := file.read(_PIECE):
            state.update(block)
            n_read += len(block)
            if n_read > _MOST:
                return ""
    return state.hexdigest()
