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
    """The first that is there: each place in turn, in it each name, plain or with .gz, .bz2, .xz."""
    return next(
        (
            p
            for place in places
            for name in names
            for end in PACKED
            if (p := place / f"{name}{end}").is_file()
        ),
        None,
    )


def find_all_files(places: Sequence[Path], names: Sequence[str]) -> list[Path] | None:
    """The files of these names, plain or packed, in the first place that has them all."""
    for place in places:
        found = [find_first_file([place], name) for name in names]
        if all(found):
            return cast(list[Path], found)
    return None


def build_not_found(
    what: str, names: Sequence[str], places: Sequence[Path], get: str
) -> FileNotFoundError:
    """The error that says where was looked, what for, and the command that gets it."""
    return FileNotFoundError(
        f"{what} was not found: looked for {', '.join(names)} in {', '.join(map(str, places))}. Get it with: {get}"
    )


@contextlib.contextmanager
def open_packed(path: Path) -> Iterator[IO[bytes]]:
    """The file, unpacked by its ending as it is read. FileFault that names it where it is no such archive or is cut off."""
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as f:
            yield cast(IO[bytes], f)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise FileFault(f"{path} cannot be unpacked ({error}); fetch it again") from error
    except OSError as error:
        if error.errno is not None:  # the disk's own error; bz2 has none
            raise
        raise FileFault(f"{path} cannot be unpacked ({error}); fetch it again") from error


def digest_files(parts: Sequence[Sequence[Path]], whole: bool = True) -> str:
    """sha256 over the files of each part (training set, test set), in the order in which they are read: sizes and bytes, so that a file may be
    renamed; not whole: names and sizes alone, which is quick and sees less."""
    h = hashlib.sha256()
    for part in parts:
        h.update(encode_json(["part", len(part)]))
        for path in part:
            h.update(
                encode_json([path.stat().st_size] if whole else [path.name, path.stat().st_size])
            )
            if whole:
                with open(path, "rb") as f:
                    h.update(hashlib.file_digest(f, "sha256").digest())
    return h.hexdigest()


def find_companion(path: Path, name: str, what: str) -> Path:
    """The file `name` in the folder of `path`. It is stored in split files and may come from one, so it names nothing outside that folder."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name:
        raise UsageError(
            f"{what} is {name!r}; give the name of a file in the folder of {path.name}, without '..'"
        )
    there = path.parent / name
    if not there.is_file():
        raise FileNotFoundError(f"{what}: there is no file {there}")
    return there


def require_published_counts(
    what: str, got: Sequence[int], published: Sequence[int], kinds: Sequence[str], any_size: bool
) -> None:
    """ValueError where counts are not those of the published data set."""
    if any_size or tuple(got) == tuple(published):
        return
    said, needed = (
        ", ".join(f"{n:,} {kind}" for n, kind in zip(counts, kinds, strict=True))
        for counts in (got, published)
    )
    raise UsageError(
        f"these files hold {said}; {what} has {needed}. Fetch them again, or take them as they are with --any-size (any_size=True)"
    )
