"""Files that are written whole or not at all."""

import contextlib
import os
import secrets
import stat
from pathlib import Path


class FileFault(ValueError):
    """A file or folder that is not as it must be. Commands end with exit code 1, other ValueErrors are questions of usage."""


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
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600), "wb") as f:
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


def sync_folder(path: Path) -> None:
    """Puts renames in a folder on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
