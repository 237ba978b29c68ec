"""Files that come to be once: whoever is second is told so, on network disks too."""

import contextlib
import errno
import os
from pathlib import Path

from niidpart.temporaries import temporary_file

# What a file system without hard links answers.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


def create_once(path: Path, data: bytes) -> bool:
    """Write a file that nobody has written yet, whole. Return whether it is ours.

    By a hard link, which one process alone can make, whatever the clocks and locks of the machines
    are. Where the disk has no links the name is taken by an empty file, which the whole one then
    replaces; after a kill in between it stays empty, and readers count it as nobody's.
    """
    with temporary_file(path, 0o666) as (temporary, handle):
        _write_synced(handle, data)
        try:
            os.link(temporary, path)
        except FileExistsError:
            # A server that has lost its answer is asked again, and says of our own link that it is
            # there: then the file has two names.
            return _is_same(temporary, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return _take_name(temporary, path)
    return True


def _take_name(temporary: Path, path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        return False
    os.replace(temporary, path)
    return True


def _is_same(one: Path, other: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samefile(one, other)
    return False


def _write_synced(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.fsync(handle)
