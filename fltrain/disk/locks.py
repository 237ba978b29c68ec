"""Locks of files, which end with the process that holds them."""

import contextlib
import errno
import fcntl
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from .plain_folder import RunError

# Descriptors of the locks that this process holds. A lock is held as long as any process has a copy
# of its descriptor: a forked worker would hold that of a killed run for the moment it outlives it.
_held: set[int] = set()
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_READ_ONLY = (errno.EACCES, errno.EROFS)


@contextlib.contextmanager
def lock_file(path: Path, kind: int) -> Iterator[None]:
    """Lock a file. kind: LOCK_EX for one process, LOCK_SH for any number that have it so.

    RunError if another process trains in the file's folder. A warning where files have no locks.
    """
    is_there = False
    while not is_there:
        with _hold_open(path, kind) as file:
            _lock(file, kind, path)
            # Another process may have replaced the file before it was locked here.
            is_there = _is_still(file, path)
            if is_there:
                yield


@contextlib.contextmanager
def _hold_open(path: Path, kind: int) -> Iterator[int]:
    """Yield a descriptor that can be locked so; closing it gives up the lock."""
    file = _open_for_lock(path, kind)
    _held.add(file)
    try:
        yield file
    finally:
        # A forked child that leaves the block has closed its copy already.
        if file in _held:
            _held.remove(file)
            _close(file)


def _lock(file: int, kind: int, path: Path) -> None:
    """Lock an open file. RunError where another process has it."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunError(
            f"{path.parent} is being trained by another process, or verified; wait until it ends"
        ) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        warnings.warn(
            f"{path.parent} lies where files have no locks ({error.strerror}): "
            "see to it that no other process trains in it",
            stacklevel=4,
        )


def _is_still(file: int, path: Path) -> bool:
    """Return whether a path leads to this open file."""
    there = os.stat(path, follow_symlinks=False)
    return os.path.samestat(os.fstat(file), there)


def _open_for_lock(path: Path, kind: int) -> int:
    """Return a descriptor that can be locked so.

    NFS gives a lock for one process alone to who may write, though nothing is written here. A file
    that may only be read is opened so, which suffices elsewhere.
    """
    if kind == fcntl.LOCK_EX:
        try:
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)


def _close(file: int) -> None:
    """Close a descriptor. What the disk says then is about no data: nothing was written by it."""
    os.closerange(file, file + 1)


def _close_in_child() -> None:
    for file in _held:
        _close(file)
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)
