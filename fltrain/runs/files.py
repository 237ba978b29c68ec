"""The files of a run folder: JSON, and logs of a line a round.

Every file except the logs is written whole or not at all. The torn last line of a log, as a killed
run leaves it, does not count.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from niidpart.errors import FileFault
from niidpart.files import sync_folder, write_whole

JSON = dict[str, Any]


class RunError(FileFault):
    """A run folder that cannot be used. The message says which file, and what to do."""


def write_json(path: Path, value: JSON) -> None:
    """Write an object into a file."""
    write_whole(path, (json.dumps(value, indent=2) + "\n").encode())


def read_json(path: Path) -> JSON:
    """Return the object in a file. RunError where it holds none."""
    try:
        value = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({error})") from error
    if not isinstance(value, dict):
        raise RunError(f"{path} is no JSON object")
    return value


def write_lines(path: Path, values: Sequence[Mapping[str, Any]]) -> None:
    """Replace a log by these lines."""
    write_whole(path, "".join(_format_line(value) for value in values).encode())


def read_lines(path: Path) -> list[JSON]:
    """Return the whole lines of a log. RunError if one is no JSON object with a round."""
    # The last piece is "" behind a whole line, or else the torn line of a killed run.
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    try:
        return [_parse_line(line) for line in lines]
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({error}); nothing was changed") from error


def _parse_line(line: bytes) -> JSON:
    value = json.loads(line)
    if not isinstance(value, dict) or type(value.get("round")) is not int:
        raise ValueError("a line is no JSON object with a round")
    return value


def _format_line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, allow_nan=False) + "\n"


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Append a line, which is on the disk when this returns; a torn line is cut off first."""
    try:
        with open(path, "ab+") as log:
            _cut_torn_line(log)
            log.write(_format_line(value).encode())
            log.flush()
            os.fsync(log.fileno())
    except OSError as error:
        message = (
            f"{path} could not be written: {error.strerror}; what the run has reached is kept: "
            f"make room, then fltrain resume {path.parent}"
        )
        raise OSError(error.errno, message) from error


def _cut_torn_line(log: BinaryIO) -> None:
    """Cut off a last line without its end, which a run left that was killed while it wrote it.

    What is appended behind it would be part of that line, and lost with it.
    """
    if not log.tell():
        return
    log.seek(-1, os.SEEK_END)
    if log.read(1) != b"\n":
        log.seek(0)
        log.truncate(log.read().rfind(b"\n") + 1)


@contextlib.contextmanager
def lock_file(path: Path, kind: int) -> Iterator[None]:
    """Lock a file. kind: LOCK_EX for one process, LOCK_SH for any number that have it so.

    RunError if another process trains in the file's folder.
    """
    with open(path) as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(
                f"{path.parent} is being trained by another process; wait until it ends"
            ) from error
        yield


@contextlib.contextmanager
def stage_folder(path: str | Path) -> Iterator[Path]:
    """Yield a folder to write into, which stands at `path`, whole, when the block ends.

    Whatever is found there later can be resumed. RunError if something is there already: an earlier
    run is never written over.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunError(
            f"{path} is there already and not empty; "
            f"take another --out, or go on with it: fltrain resume {path}"
        )
    target = path.resolve()  # of a link to an empty folder: that folder
    # Beside the target: a folder can be moved as a whole only within its file system.
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield new
        os.replace(new, target)
        # Or the new name could be gone after a power cut, and with it rounds that were reported.
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
