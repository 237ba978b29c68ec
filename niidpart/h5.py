"""`split.h5` on disk: `write` and `read`. docs/format.md is the specification."""

import io
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from .check import FORMAT_NAME, examine
from .files import write_whole
from .guard import SplitError, load
from .recipe import canonical
from .split import FORMAT_MAJOR, FederatedSplit, array_digest

FORMAT_MINOR = 0
_CHUNK = 1 << 18  # values


def write(split: FederatedSplit, path: str | Path) -> Path:
    """Writes the split, whole or not at all: a file that stood there is replaced in one step. OSError where the disk refuses."""
    write_whole(Path(path), to_bytes(split))
    return Path(path)


def to_bytes(split: FederatedSplit) -> bytes:
    """The split file as it would be written."""
    arrays = _arrays(split)
    digests = {"split": split.digest} | {name: part.digest for name, part in split.parts.items()}
    digests |= {name: array_digest(a) for name, a in arrays.items() if name.startswith(("parties/", "draws/")) or name.endswith("/counts")}
    manifest = {
        "format": {"name": FORMAT_NAME, "major": FORMAT_MAJOR, "minor": FORMAT_MINOR},
        "requires": [],
        "recipe": split.recipe.to_json(),
        "source": split.source.to_json(),
        "digests": digests,
        "written_by": f"niidpart {version('niidpart')}",
    }
    arrays["manifest"] = np.frombuffer(canonical(manifest), np.uint8)
    if split.root:
        arrays["hint"] = np.frombuffer(canonical({"root": split.root}), np.uint8)
    return _image(arrays)


def read(path: str | Path) -> FederatedSplit:
    """The split in a file, after every rule of docs/format.md was checked. SplitError names the broken ones; nothing partial is returned."""
    split, faults = examine(load(path))
    if split is None:
        raise SplitError(path, faults)
    return split


def _arrays(split: FederatedSplit) -> dict[str, NDArray[Any]]:
    """Everything that is stored, by its path; what is empty is left out, since the absence says the same."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, part in split.parts.items():
        if part.n:
            arrays |= {f"{name}/indptr": part.indptr, f"{name}/indices": part.indices, f"{name}/counts": part.counts}
    arrays |= {f"draws/{k}": v for k, v in split.draws.items() if v.size}
    return arrays | {f"parties/{k}": v for k, v in split.columns.items()}


def _image(arrays: dict[str, NDArray[Any]]) -> bytes:
    """The bytes of the HDF5 file. v110 has checksums on its own structures; fletcher32 covers the values."""
    image = io.BytesIO()  # not the core driver's get_file_image: in HDF5 1.14 its superblock has a wrong checksum
    access, creation, group = (h5py.h5p.create(kind) for kind in (h5py.h5p.FILE_ACCESS, h5py.h5p.FILE_CREATE, h5py.h5p.GROUP_CREATE))
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, image)
    for made in (creation, group):
        made.set_obj_track_times(False)  # older h5py stamps groups with the time: two writes would differ
    with h5py.File(h5py.h5f.create(b"split", h5py.h5f.ACC_TRUNC, creation, access)) as f:
        for name in sorted({name.partition("/")[0] for name in arrays if "/" in name}):
            h5py.h5g.create(f.id, name.encode(), gcpl=group)
        for name in sorted(arrays):
            a = np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<"))
            rows = max(1, _CHUNK // max(1, a[0].size)) if a.ndim > 1 else _CHUNK
            chunks = (min(len(a), rows), *a.shape[1:])
            f.create_dataset(name, data=a, chunks=chunks, compression="gzip", compression_opts=4, shuffle=True, fletcher32=True)
    return image.getvalue()
