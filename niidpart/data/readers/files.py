"""Files where people keep them: found plain or packed, opened, and named by their bytes."""

import bz2
import contextlib
import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, cast

from ...errors import FileFault, UsageError
from ...splits.digests import encode_json

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
PACKED = ("", *_OPENERS)

AnySize = Annotated[
    bool, "Take files with other counts than the published ones, which are refused otherwise."
]
TestFile = Annotated[str | None, "Another file in its folder, the test set."]


def find_first_file(places: Sequence[Path], *names: str) -> Path | None:
    """Return the first file that is there.

    Each place in turn, in it each name, plain or with .gz, .bz2, .xz.
    """
    for place in places:
        for name in names:
            for ending in PACKED:
                path = place / f"{name}{ending}"
                if path.is_file():
                    return path
    return None


def find_all_files(places: Sequence[Path], names: Sequence[str]) -> list[Path] | None:
    """Return the files of these names, plain or packed, in the first place that has them all."""
    for place in places:
        files = [find_first_file([place], name) for name in names]
        if all(files):
            return cast(list[Path], files)
    return None


def build_not_found(
    what: str, names: Sequence[str], places: Sequence[Path], get: str
) -> FileNotFoundError:
    """Return the error that says where was looked, what for, and the command that gets it."""
    looked = f"looked for {', '.join(names)} in {', '.join(map(str, places))}"
    return FileNotFoundError(f"{what} was not found: {looked}. Get it with: {get}")


@contextlib.contextmanager
def open_packed(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, unpacked by its ending as it is read.

    FileFault names the file if it is no such archive or is cut off.
    """
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as file:
            yield cast(IO[bytes], file)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise _build_damaged(path, error) from error
    except OSError as error:
        if error.errno is not None:  # the disk's own error; that of a damaged bz2 has none
            raise
        raise _build_damaged(path, error) from error


def _build_damaged(path: Path, error: Exception) -> FileFault:
    return FileFault(f"{path} cannot be unpacked ({error}); fetch it again")


def digest_files(parts: Sequence[Sequence[Path]], whole: bool = True) -> str:
    """Return the sha256 over the files of each part (training set, test set), in reading order.

    Sizes and bytes count, so a file may be renamed. Not whole: names and sizes alone, which is
    quick and sees less.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(encode_json(["part", len(part)]))
        for path in part:
            size = path.stat().st_size
            if not whole:
                digest.update(encode_json([path.name, size]))
                continue
            digest.update(encode_json([size]))
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def find_companion(path: Path, name: str, what: str) -> Path:
    """Return the file `name` in the folder of `path`.

    The name is stored in split files and may come from an untrusted one, so it names nothing
    outside that folder.
    """
    # Backslashes part folders on Windows; a split that is made there is read elsewhere too.
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name:
        advice = f"give the name of a file in the folder of {path.name}, without '..'"
        raise UsageError(f"{what} is {name!r}; {advice}")
    there = path.parent / name
    if not there.is_file():
        raise FileNotFoundError(f"{what}: there is no file {there}")
    return there


def require_published_counts(
    what: str, got: Sequence[int], published: Sequence[int], kinds: Sequence[str], any_size: bool
) -> None:
    """Raise UsageError where counts are not those of the published data set."""
    if any_size or tuple(got) == tuple(published):
        return
    held, needed = _describe_counts(got, kinds), _describe_counts(published, kinds)
    advice = "Fetch them again, or take them as they are with --any-size (any_size=True)"
    raise UsageError(f"these files hold {held}; {what} has {needed}. {advice}")


def _describe_counts(counts: Sequence[int], kinds: Sequence[str]) -> str:
    return ", ".join(f"{n:,} {kind}" for n, kind in zip(counts, kinds, strict=True))
