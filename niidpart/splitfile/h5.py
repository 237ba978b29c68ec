"""`split.h5` on disk: `write`. docs/format.md is the specification."""

import io
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, cast

import h5py
import numpy as np

from ..files import write_whole
from ..recipe import canonical
from ..split import FORMAT_MAJOR, FederatedSplit, array_digest
from .layout import arrays_of, digest_table, misfits
from .limits import MAX_HINT, MAX_MANIFEST
from .manifest import FORMAT_NAME, parsed, understood
from .stored import Array

FORMAT_MINOR = 1
_CHUNK, _CHUNK_BYTES = 1 << 18, 1 << 21  # values, bytes
_STRUCTURE = 1 << 16  # bytes that HDF5 writes at once of its own structures


def write(split: FederatedSplit, path: str | Path) -> Path:
    """Writes the split, whole or not at all: a file that stood there is replaced in one step, and its permissions stay.

    OSError where the disk refuses. ValueError for a split that no reader would take (docs/format.md), which `make` does not give.
    """
    arrays = _arrays(split)
    write_whole(Path(path), lambda file: _image(arrays, file))
    return Path(path)


def to_bytes(split: FederatedSplit) -> bytes:
    """The split file as it would be written."""
    image = io.BytesIO()
    _image(_arrays(split), image)
    return image.getvalue()


def _arrays(split: FederatedSplit) -> dict[str, Array]:
    """All that is stored, by its path."""
    arrays = arrays_of(split)
    skew = _skew(split)
    manifest: dict[str, Any] = {
        "format": {"name": FORMAT_NAME, "major": FORMAT_MAJOR, "minor": FORMAT_MINOR},
        "requires": ["overlap"] if split.overlaps else [],
        "recipe": split.recipe.to_json(),
        "source": split.source.to_json(),
        "digests": digest_table(split),
        "skew": {k.removeprefix("skew/"): array_digest(a) for k, a in skew.items()},
        "written_by": f"niidpart {version('niidpart')}",
    }
    raw = canonical(manifest)
    _readable(raw, arrays | skew, split)
    arrays |= skew | {"manifest": np.frombuffer(raw, np.uint8)}
    if split.root:
        arrays["hint"] = np.frombuffer(canonical({"root": split.root}), np.uint8)
        if len(arrays["hint"]) > MAX_HINT:
            raise ValueError(f"the path of the data set has {len(split.root)} characters; shorten it")
    return arrays


def _skew(split: FederatedSplit) -> dict[str, Array]:
    """How skewed the split is; it follows from the counts and stands outside the digest."""
    skew = split.skew
    return {"skew/map_beta": skew.map_beta, "skew/table": np.frombuffer(canonical(skew.to_json()), np.uint8)}


def _readable(manifest: bytes, arrays: dict[str, Array], split: FederatedSplit) -> None:
    """A writer keeps to what a reader takes."""
    faults = misfits(arrays, split.recipe, split.source, split.overlaps)
    if len(manifest) > MAX_MANIFEST:
        raise ValueError(
            f"the split needs a manifest of {len(manifest)} bytes, {MAX_MANIFEST} are allowed; it has {len(split.source.class_names)} classes"
        )
    faults += understood(parsed("manifest", manifest))[1]
    if faults:
        raise ValueError(f"the split cannot be stored (docs/format.md): {'; '.join(map(str, faults))}")


def _image(arrays: dict[str, Array], target: BinaryIO) -> None:
    """Writes the HDF5 file. v110 has checksums on its own structures; fletcher32 covers the values."""
    file = _Target(target)  # not the core driver's get_file_image: in HDF5 1.14 its superblock has a wrong checksum
    try:
        _fill(arrays, file)
    except Exception:
        if file.error is None:
            raise
    if file.error is not None:
        raise file.error


def _fill(arrays: dict[str, Array], file: "_Target") -> None:
    with h5py.File(_created(file)) as f:
        group = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
        group.set_obj_track_times(False)  # older h5py stamps groups with the time: two writes would differ
        for name in sorted({name.partition("/")[0] for name in arrays if "/" in name}):
            h5py.h5g.create(f.id, name.encode(), gcpl=group)
        for name in sorted(arrays):
            a = np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<"))
            f.create_dataset(name, data=a, chunks=_chunks(a), compression="gzip", compression_opts=4, shuffle=True, fletcher32=True)
            if file.error is not None:
                return


def _created(file: "_Target") -> h5py.h5f.FileID:
    """A new HDF5 file. What leads to `file` is gone when this returns: h5py crashes at the end of python if a traceback still holds it then."""
    access, creation = h5py.h5p.create(h5py.h5p.FILE_ACCESS), h5py.h5p.create(h5py.h5p.FILE_CREATE)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, file)
    creation.set_obj_track_times(False)
    return h5py.h5f.create(b"split", h5py.h5f.ACC_TRUNC, creation, access)


def _chunks(a: Array) -> tuple[int, ...]:
    most = max(1, min(_CHUNK, _CHUNK_BYTES // a.itemsize))
    wide = min(most, *a.shape[1:]) if a.ndim > 1 else 1
    return (min(len(a), max(1, most // wide)), *([wide] if a.ndim > 1 else []))


class _Target(io.RawIOBase):
    """A file that keeps its first error to itself until HDF5 has closed: a library that cannot finish what it has open ends in a crash.

    What HDF5 writes after the error is kept here, as far as it may be read again: structures are small, values are never read.
    """

    def __init__(self, file: BinaryIO):
        self.file, self.error = file, cast(BaseException | None, None)
        self.at = self.size = 0
        self.late: list[tuple[int, bytes]] = []

    def write(self, data: Any) -> int:
        n = len(data)
        self._try(lambda: self.file.write(data), self.at)
        if self.error is not None and n <= _STRUCTURE:
            self.late.append((self.at, bytes(data)))
        self.at += n
        self.size = max(self.size, self.at)
        return n

    def readinto(self, buffer: Any) -> int:
        buffer[:] = bytes(len(buffer))
        self._try(lambda: self.file.readinto(buffer), self.at)  # type: ignore[attr-defined]
        for start, data in self.late:
            a, b = max(start, self.at), min(start + len(data), self.at + len(buffer))
            if a < b:
                buffer[a - self.at : b - self.at] = data[a - start : b - start]
        n = max(0, min(len(buffer), self.size - self.at))
        self.at += n
        return n

    def _try(self, call: Callable[[], object], at: int) -> None:
        try:
            self.file.seek(at)
            call()
        except BaseException as error:  # an interrupt as well
            self.error = self.error or error.with_traceback(None)  # the traceback would hold this object

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def tell(self) -> int:
        return self.at

    def truncate(self, size: int | None = None) -> int:
        self.size = self.at if size is None else size
        self._try(lambda: self.file.truncate(self.size), self.at)
        return self.size

    def flush(self) -> None:
        if self.error is None:
            self._try(self.file.flush, self.at)
