"""`check`, `read`: which rules of docs/format.md a split file breaks, and the split in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import UsageError
from ..splits.split import FederatedSplit, adopt_skew
from . import guard, sandbox
from .faults import Fault, SplitError
from .known_skews import is_known_skew
from .rules import Examined, examine
from .stated_skew import parse_skew
from .stored import Content


def check(
    path: str | Path,
    *,
    untrusted: bool = False,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> list[Fault]:
    """Return the rules of docs/format.md that a file breaks.

    Parameters
    ----------
    path : str or Path
    untrusted, max_memory, timeout
        As for `niidpart.read`.

    Returns
    -------
    list of Fault
        Empty for a valid file.

    Raises
    ------
    FileNotFoundError
        There is no such file.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> split = niidpart.make(np.arange(100) % 4, "homo", n_parties=5)
    >>> niidpart.check(niidpart.write(split, "split.h5"))
    []
    """
    try:
        with open_content(
            path, untrusted=untrusted, max_memory=max_memory, timeout=timeout
        ) as content:
            return examine(content).faults
    except SplitError as error:
        return error.faults


def read(
    path: str | Path,
    *,
    untrusted: bool = False,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> FederatedSplit:
    """Read the split in a file, after every rule of docs/format.md was checked.

    Parameters
    ----------
    path : str or Path
    untrusted : bool
        For a file that comes from elsewhere: the HDF5 library parses it in a child process with
        limits, which hands over bare values, and the file's hint is not followed. A child that
        crashes or exceeds its limits is a broken rule like any other.
    max_memory : int, optional
        Bytes that the child may take, and that the arrays may declare; 2 GiB unless given.
    timeout : float, optional
        Seconds that the child may take; 60 unless given.

    Returns
    -------
    FederatedSplit
        Its skew is the one that the file states, where this user's `write` or `verify` has computed
        that very skew; else it is computed.

    Raises
    ------
    SplitError
        Names the rules that the file breaks; nothing partial is returned.
    FileNotFoundError
        There is no such file.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> split = niidpart.make(np.arange(100) % 4, "homo", n_parties=5)
    >>> path = niidpart.write(split, "split.h5")
    >>> niidpart.read(path).digest == split.digest
    True
    """
    with open_content(path, untrusted=untrusted, max_memory=max_memory, timeout=timeout) as content:
        examined = examine(content)
    if examined.split is None:
        raise SplitError(path, examined.faults)
    if content.own:
        _adopt_known_skew(examined.split, examined)
    return examined.split


def _adopt_known_skew(split: FederatedSplit, examined: Examined) -> None:
    """Have a split answer with the skew that its file states, where that is known to be right."""
    manifest, skew = examined.manifest, examined.skew
    if manifest is None or skew is None or not is_known_skew(manifest.digests, manifest.skew):
        return
    stated = parse_skew(skew.table, skew.map_beta)
    if stated is not None:
        adopt_skew(split, stated)


@contextmanager
def open_content(
    path: str | Path, *, untrusted: bool, max_memory: int | None, timeout: float | None
) -> Iterator[Content]:
    """Open a file in this process, or an untrusted one in a child process.

    Where this process has not the memory for its arrays, that is rule 5.
    """
    if untrusted:
        way = sandbox.open_in_child(path, max_memory=max_memory, timeout=timeout)
    elif max_memory is not None or timeout is not None:
        raise UsageError(
            "max_memory and timeout are limits of the child process that reads a file from "
            "elsewhere; they go with untrusted=True"
        )
    else:
        way = guard.open_here(path)
    try:
        with way as content:
            yield content
    except MemoryError as error:
        message = "this process has not the memory to read it; read it where there is more"
        raise SplitError(path, [Fault(5, message)]) from error
