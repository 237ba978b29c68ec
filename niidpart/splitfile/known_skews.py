"""Which stored skews this user's own niidpart computed or checked: a record in his state folder.

A skew that stands in a file may be forged, and a forged file that was downloaded belongs to the
user as one that he made does. So `write` and `verify` note what they computed, and `read` believes
a stored skew where it finds the note. What is noted names the numbers and all that they follow
from, so that no other file has it. The record is no more than a shortcut: what is not in it, or
where it cannot be read or written, is computed.
"""

import contextlib
import os
import stat
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ..files import write_whole
from ..heterogeneity import MEASURES
from ..heterogeneity.concentration import VERSION as MAP_BETA_VERSION
from ..splits.digests import encode_json, sha256

_LINE = 65  # bytes: a sha256 in hexadecimal digits, and a newline
_MOST = 1 << 14  # lines; of more the older half goes
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def remember_skew(digests: Mapping[str, str], skew: Mapping[str, str]) -> None:
    """Note that the skew with these digests is right for the split with those of `digests`."""
    name = _name_statement(digests, skew)
    path = _find_record()
    if path is None or name in _read_lines(path):
        return
    # A full disk or a folder that is not there to be written costs the shortcut and no more.
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, f"{name}\n".encode())
        finally:
            os.close(handle)
        _shorten(path)


def is_known_skew(digests: Mapping[str, str], skew: Mapping[str, str]) -> bool:
    """Return whether this user's niidpart has computed or checked that very skew."""
    path = _find_record()
    return path is not None and _name_statement(digests, skew) in _read_lines(path)


def _name_statement(digests: Mapping[str, str], skew: Mapping[str, str]) -> str:
    """Return a digest of a skew, of what it follows from, and of how it is computed here."""
    whole = {"digests": dict(digests), "skew": dict(skew), "versions": _list_versions()}
    return sha256(encode_json(whole))


@cache
def _list_versions() -> dict[str, int]:
    versions = {name: MEASURES.record(name).version for name in MEASURES.names()}
    return versions | {"map_beta": MAP_BETA_VERSION}


def _find_record() -> Path | None:
    """Return the record's place, None for a user without a home.

    A relative $XDG_STATE_HOME counts as none, as the XDG specification says.
    """
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        state = Path(os.path.expanduser("~"), ".local", "state")
    return state / "niidpart" / "skews" if state.is_absolute() else None


def _read_lines(path: Path) -> set[str]:
    """Return what is noted; nothing where somebody else could have noted it."""
    try:
        if not _is_own(path.parent.lstat()):
            return set()
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, encoding="ascii", errors="replace") as file:
            found = os.fstat(handle)
            if not (_is_own(found) and stat.S_ISREG(found.st_mode)):
                return set()
            return set(file.read(2 * _MOST * _LINE).splitlines())
    except OSError:
        return set()


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE


def _shorten(path: Path) -> None:
    if path.stat().st_size > _MOST * _LINE:
        lines = path.read_bytes().splitlines(keepends=True)
        write_whole(path, b"".join(lines[len(lines) // 2 :]))
