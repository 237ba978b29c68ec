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
    """`data` as the file `path`: a temporary file beside it, synced, renamed over it, the folder synced.

    If it fails, the old file stands. A file that is replaced keeps its permissions. OSError says which file, how many bytes, and that
    nothing was changed. A killed process may leave `.NAME.*.tmp` behind.
    """
    path = path.resolve()  # a link stays, what it leads to is written
    if path.exists() and not path.is_file():
        raise FileFault(f"{path} is there and is no regular file; take another name")
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) & 0o777 if path.exists() else None
        with open(
            os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600
            ),
            "wb",
        ) as f:
            if mode is not None:
                os.fchmod(f.fileno(), mode)
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except OSError as error:
        what = f"{path} could not be written ({len(data)} bytes): {error.strerror or error}; what stood there before is unchanged"
        raise OSError(error.errno, what) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    sync_folder(path.parent)


def write_folder(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    """The folder `path` of (path inside it, content), one file in memory at a time: a temporary folder beside it, synced, renamed to it.

    `path` may be an empty folder. FileFault where it is anything else; ValueError for a file that would lie outside, or twice. Whatever fails, also
    in `files`, nothing stays behind, and what stood there is unchanged. A killed process may leave `.NAME.*.tmp` behind.
    """
    path = path.absolute()
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise FileFault(f"{path} is there and is no folder; take another name")
    if path.exists() and any(path.iterdir()):
        raise FileFault(
            f"{path} is a folder that is not empty; take another name, or empty it first"
        )
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    try:
        try:
            temporary.mkdir(parents=True)
        except OSError as error:
            what = f"the folder {path} cannot be made: {error.strerror or error}; nothing was written, take a place where folders can be made"
            raise OSError(error.errno, what) from error
        for name, content in files:
            _write_inside(temporary, name, content)
        for folder, _, _ in os.walk(temporary):
            sync_folder(Path(folder))
        try:
            os.replace(temporary, path)
        except OSError as error:
            what = (
                f"{path} could not be put in place: {error.strerror or error}; nothing was written"
            )
            raise OSError(error.errno, what) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(path.parent)
    return path


def _write_inside(folder: Path, name: str, content: bytes) -> None:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise UsageError(f"{name!r} is no path inside a folder; it must be relative, without '..'")
    place = folder.joinpath(*parts)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(place, "xb") as f:
            f.write(content)
            f.flush()
            os.fsync(f.fileno())
    except FileExistsError as error:
        raise UsageError(
            f"{name!r} is written twice; each file of a folder has its own name"
        ) from error
    except OSError as error:
        what = f"{name} could not be written ({len(content)} bytes): {error.strerror or error}; nothing of the folder stays"
        raise OSError(error.errno, what) from error


def sync_folder(path: Path) -> None:
    """Puts renames in a folder on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
