"""The errors that niidpart and fltrain raise on purpose, and those of the machine.

Any other exception is a bug of theirs.
"""

import errno
import os

# What a disk, a network or a quota is at fault in, and never what a file holds.
_MACHINE = frozenset(
    (
        *(errno.EIO, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE),
        *(errno.ENOLCK, errno.ENXIO, errno.ENODEV, errno.ETIMEDOUT, errno.EACCES),
    )
)


class UsageError(ValueError):
    """What was asked for cannot be done as it was asked.

    The message says what came, what is needed and what to do. Commands print it and end with exit
    code 2. It is a ValueError, so that `except ValueError` catches it too.

    Examples
    --------
    >>> import niidpart
    >>> try:
    ...     niidpart.make([0, 1, 0, 1], "homo", n_parties=9)
    ... except niidpart.UsageError as error:
    ...     print(error)
    9 parties cannot share 4 examples; use at most 4 parties
    """


class FileFault(ValueError):
    """A file or folder is not as it must be.

    Commands print the message and end with exit code 1.

    Examples
    --------
    >>> import niidpart
    >>> issubclass(niidpart.SplitError, niidpart.FileFault)
    True
    """


def require_type(what: str, value: object, kind: type | tuple[type, ...], needed: str = "") -> None:
    """Raise UsageError unless the value is of the type. needed: the type in the caller's words."""
    if isinstance(value, kind):
        return
    if not needed and isinstance(kind, type):
        needed = f"a {kind.__name__}"
    is_short = value is None or isinstance(value, str | int | float)
    got = repr(value)[:60] if is_short else f"of the type {type(value).__name__}"
    raise UsageError(f"{what} is {got}; {needed} is needed")


def find_machine_fault(error: BaseException) -> OSError | MemoryError | None:
    """Return the error of the machine that an error is, or was raised after; None where none is.

    What reads a file and takes every failure for damage would else tell a user to throw away a
    file that is whole.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError):
            return seen
        if isinstance(seen, OSError) and seen.errno in _MACHINE:
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def raise_machine_fault(error: BaseException, what: str) -> None:
    """Raise OSError where the machine is behind an error, saying what could not be done.

    Examples
    --------
    >>> from niidpart.errors import raise_machine_fault
    >>> try:
    ...     raise_machine_fault(OSError(5, "a library's own words"), "a.h5 cannot be read")
    ... except OSError as error:
    ...     print(error)
    [Errno 5] a.h5 cannot be read: Input/output error
    """
    fault = find_machine_fault(error)
    if isinstance(fault, OSError):
        raise OSError(fault.errno, f"{what}: {os.strerror(fault.errno or 0)}") from error


def require_path(what: str, value: object) -> None:
    """Raise UsageError unless the value is a path, FileFault where its links lead in a circle.

    what: that the file or folder is.
    """
    require_type(what, value, (str, os.PathLike), "a path")
    assert isinstance(value, str | os.PathLike)
    require_no_circle(value)


def require_no_circle(path: str | os.PathLike[str]) -> None:
    """Raise FileFault for a link that leads back to itself, which would look like nothing at all.

    Python's own `resolve` takes it for a bug, and its `exists` for a missing file.
    """
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            advice = "make it lead to a file or folder"
            raise FileFault(f"{path} is a link that leads back to itself; {advice}") from error
    except ValueError:  # no path at all, such as one with a null byte
        return
