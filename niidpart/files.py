"""Files that are written whole or not at all."""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from .errors import FileFault, UsageError


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` as the file `path`: a temporary file next to it, synced, renamed over it.

    If it fails, the old file stands. A file that is replaced keeps its permissions. OSError says
    which file, how many bytes, and that nothing was changed. A killed process may leave
    `.NAME.*.tmp` behind.
    """
    path = path.resolve()  # a link stays, what it leads to is written
    if path.exists() and not path.is_file():
        raise FileFault(f"{path} is there and is no regular file; take another name")
    temporary = _choose_temporary_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_like(path, temporary, data)
        os.replace(temporary, path)
    except OSError as error:
        what = f"{path} could not be written ({len(data)} bytes)"
        raise _explain(error, what, "what stood there before is unchanged") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    sync_folder(path.parent)


def _write_like(path: Path, temporary: Path, data: bytes) -> None:
    """Write a new file with the permissions of `path`, where that is there."""
    mode = None
    if path.exists():
        mode = stat.S_IMODE(path.stat().st_mode) & 0o777
    # With the old file's permissions to come, nobody else may read the new one before.
    at_first = 0o666 if mode is None else 0o600
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(temporary, flags, at_first), "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        _write_synced(file.fileno(), data)


def write_folder(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    """Write the folder `path` of (path inside it, content), one file in memory at a time.

    A temporary folder next to it, synced, is renamed to it. `path` may be an empty folder.
    FileFault where it is anything else; UsageError for a file that would lie outside, or twice.
    Whatever fails, also in `files`, nothing stays behind, and what stood there is unchanged. A
    killed process may leave `.NAME.*.tmp` behind.
    """
    path = path.absolute()
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise FileFault(f"{path} is there and is no folder; take another name")
    if path.exists() and any(path.iterdir()):
        raise FileFault(
            f"{path} is a folder that is not empty; take another name, or empty it first"
        )
    temporary = _choose_temporary_name(path)
    try:
        _create_folder(temporary, path)
        for name, content in files:
            _write_inside(temporary, name, content)
        for folder, _, _ in os.walk(temporary):
            sync_folder(Path(folder))
        try:
            os.replace(temporary, path)
        except OSError as error:
            what = f"{path} could not be put in place"
            raise _explain(error, what, "nothing was written") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(path.parent)
    return path


def _create_folder(temporary: Path, path: Path) -> None:
    try:
        temporary.mkdir(parents=True)
    except OSError as error:
        hint = "nothing was written, take a place where folders can be made"
        raise _explain(error, f"the folder {path} cannot be made", hint) from error


def _write_inside(folder: Path, name: str, content: bytes) -> None:
    parts = PurePosixPath(name).parts
    leads_out = name.startswith("/") or ".." in parts
    if not parts or leads_out or "\\" in name or "\0" in name:
        raise UsageError(f"{name!r} is no path inside a folder; it must be relative, without '..'")
    place = folder.joinpath(*parts)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(place, "xb") as file:
            _write_synced(file.fileno(), content)
    except FileExistsError as error:
        reason = "each file of a folder has its own name"
        raise UsageError(f"{name!r} is written twice; {reason}") from error
    except OSError as error:
        what = f"{name} could not be written ({len(content)} bytes)"
        raise _explain(error, what, "nothing of the folder stays") from error


def _write_synced(file: int, data: bytes) -> None:
    with open(file, "wb", closefd=False) as stream:
        stream.write(data)
        stream.flush()
        os.fsync(file)


def _choose_temporary_name(path: Path) -> Path:
    return path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"


def _explain(error: OSError, what: str, consequence: str) -> OSError:
    """Return the error with words for the user, of the same kind."""
    return OSError(error.errno, f"{what}: {error.strerror or error}; {consequence}")


def sync_folder(path: Path) -> None:
    """Put renames in a folder on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
