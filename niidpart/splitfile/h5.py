"""`split.h5` on disk: `write`. docs/format.md is the specification."""

import io
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ..errors import UsageError
from ..files import write_whole
from ..splits.recipe import canonical
from ..splits.split import FORMAT_MAJOR, FederatedSplit, array_digest
from .layout import arrays_of, digest_table, misfits
from .limits import MAX_HINT, MAX_MANIFEST
from .manifest import FORMAT_NAME, parsed, understood
from .stored import Array

FORMAT_MINOR = 1
_CHUNK, _CHUNK_BYTES = 1 << 18, 1 << 21  # values, bytes


def write(split: FederatedSplit, path: str | Path) -> Path:
    """Writes the split, whole or not at all: a file that stood there is replaced in one step, and its permissions stay.

    OSError where the disk refuses. ValueError for a split that no reader would take (docs/format.md), which `make` does not give.
    """
    write_whole(Path(path), to_bytes(split))
    return Path(path)


def to_bytes(split: FederatedSplit) -> bytes:
    """The split file as it would be written."""
    return _image(_arrays(split))


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
            raise UsageError(
                f"the path of the data set has {len(split.root)} characters; shorten it"
            )
    return arrays


def _skew(split: FederatedSplit) -> dict[str, Array]:
    """How skewed the split is; it follows from the counts and stands outside the digest."""
    skew = split.skew
    return {
        "skew/map_beta": skew.map_beta,
        "skew/table": np.frombuffer(canonical(skew.to_json()), np.uint8),
    }


def _readable(manifest: bytes, arrays: dict[str, Array], split: FederatedSplit) -> None:
    """A writer keeps to what a reader takes."""
    faults = misfits(arrays, split.recipe, split.source, split.overlaps)
    if len(manifest) > MAX_MANIFEST:
        raise UsageError(
            f"the split needs a manifest of {len(manifest)} bytes, {MAX_MANIFEST} are allowed; it has {len(split.source.class_names)} classes"
        )
    faults += understood(parsed("manifest", manifest))[1]
    if faults:
        raise UsageError(
            f"the split cannot be stored (docs/format.md): {'; '.join(map(str, faults))}"
        )


def _image(arrays: dict[str, Array]) -> bytes:
    """The bytes of the HDF5 file. v110 has checksums on its own structures; fletcher32 covers the values.

    Made in memory, so that no fault of a disk happens inside the library, which ends in a crash where it cannot finish what it has open.
    """
    image = (
        io.BytesIO()
    )  # not the core driver's get_file_image: in HDF5 1.14 its superblock has a wrong checksum
    access, creation, group = (
        h5py.h5p.create(kind)
        for kind in (h5py.h5p.FILE_ACCESS, h5py.h5p.FILE_CREATE, h5py.h5p.GROUP_CREATE)
    )
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, image)
    for made in (creation, group):
        made.set_obj_track_times(
            False
        )  # older h5py stamps groups with the time: two writes would differ
    with h5py.File(h5py.h5f.create(b"split", h5py.h5f.ACC_TRUNC, creation, access)) as f:
        for name in sorted({name.partition("/")[0] for name in arrays if "/" in name}):
            h5py.h5g.create(f.id, name.encode(), gcpl=group)
        for name in sorted(arrays):
            a = np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<"))
            f.create_dataset(
                name,
                data=a,
                chunks=_chunks(a),
                compression="gzip",
                compression_opts=4,
                shuffle=True,
                fletcher32=True,
            )
    return image.getvalue()


def _chunks(a: Array) -> tuple[int, ...]:
    most = max(1, min(_CHUNK, _CHUNK_BYTES // a.itemsize))
    wide = min(most, *a.shape[1:]) if a.ndim > 1 else 1
    return (min(len(a), max(1, most // wide)), *([wide] if a.ndim > 1 else []))
