"""`write`, `to_bytes`: a split as a file. docs/format.md is the specification."""

import io
import math
import os
import threading
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ..arithmetic.words import Array
from ..disk.arrays import release_pages
from ..errors import UsageError, require_path, require_type
from ..files import write_whole, write_whole_by
from ..splits.digests import FORMAT_MAJOR, digest_array, encode_json
from ..splits.split import FederatedSplit
from .disk_image import DiskImage
from .json_text import parse_json
from .known_skews import remember_skew
from .layout import build_digest_table, check_layout, list_stored_arrays
from .limits import MAX_CHUNKS, MAX_HINT, MAX_MANIFEST, MAX_MEMORY
from .manifest import FORMAT_NAME, parse_manifest
from .replacing import require_replaceable_by

FORMAT_MINOR = 1
_CHUNK, _CHUNK_BYTES = 1 << 18, 1 << 21  # values, bytes
_LARGE = 1 << 30  # bytes of the arrays, from which on the file is not made in memory
_WRITTEN = 1 << 22  # values that are handed over at once


def write(split: FederatedSplit, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a split to a file, whole or not at all.

    A file that stood there is replaced in one step, and its permissions stay.

    Parameters
    ----------
    split : FederatedSplit
    path : str or Path
    overwrite : bool
        Replace whatever stands there. Else a file is replaced only where nothing is lost: one
        that holds this very split, or nothing at all.

    Returns
    -------
    Path

    Raises
    ------
    OSError
        The disk refuses.
    FileFault
        Something else stands there.
    UsageError
        No reader would take the split (docs/format.md); `make` gives no such split.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> split = niidpart.make(np.arange(100) % 4, "homo", n_parties=5)
    >>> niidpart.write(split, "split.h5").name
    'split.h5'
    """
    require_path("path", path)
    require_type("split", split, FederatedSplit)
    path, arrays = Path(path), _collect_arrays(split)
    if not overwrite:
        require_replaceable_by(path, split)
    n_bytes = sum(array.nbytes for array in arrays.values())
    if n_bytes < _LARGE:
        write_whole(path, _build_image(arrays))
    else:
        write_whole_by(path, lambda handle: write_image(arrays, handle), n_bytes)
    manifest = parse_json("manifest", arrays["manifest"].tobytes())
    remember_skew(manifest["digests"], manifest["skew"])
    return path


def write_image(arrays: Mapping[str, Array], handle: int) -> None:
    """Write what `_build_image` returns to an empty file, a piece at a time, and sync it.

    In a thread of its own: an interrupt that is raised within the library crashes it.
    """
    own = os.dup(handle)  # a second interrupt does not wait for the thread, which has its own
    image = DiskImage(own)
    errors: list[BaseException] = []
    # Not Thread.join: where an interrupt ends it, Python 3.11 takes the thread for ended.
    filled = threading.Lock()
    filled.acquire()

    def fill() -> None:
        try:
            _fill_image(arrays, image)
        except BaseException as error:
            errors.append(error)
        finally:
            os.close(own)
            filled.release()

    filling = threading.Thread(target=fill, name="split file")
    try:
        filling.start()
        with filled:
            pass
    except BaseException:
        image.stop()
        if filling.ident is not None:
            with filled:
                pass
        raise
    image.raise_fault()
    for error in errors:
        raise error
    os.fsync(handle)


def to_bytes(split: FederatedSplit) -> bytes:
    """Return the split file as it would be written. Raises as `write`.

    Parameters
    ----------
    split : FederatedSplit

    Returns
    -------
    bytes
        Those of an HDF5 file.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> split = niidpart.make(np.arange(100) % 4, "homo", n_parties=5)
    >>> niidpart.to_bytes(split)[:4]
    b'\\x89HDF'
    """
    require_type("split", split, FederatedSplit)
    return _build_image(_collect_arrays(split))


def _collect_arrays(split: FederatedSplit) -> dict[str, Array]:
    """Return all that is stored, by its path."""
    arrays = list_stored_arrays(split)
    # The skew follows from the counts, so it stands outside the digest.
    map_beta = split.skew.map_beta
    table = _to_array(encode_json(split.skew.to_json()))
    manifest: dict[str, Any] = {
        "format": {"name": FORMAT_NAME, "major": FORMAT_MAJOR, "minor": FORMAT_MINOR},
        "requires": ["overlap"] if split.overlaps else [],
        "recipe": split.recipe.to_json(),
        "source": split.source.to_json(),
        "digests": build_digest_table(split),
        "skew": {"map_beta": digest_array(map_beta), "table": digest_array(table)},
        "written_by": f"niidpart {version('niidpart')}",
    }
    raw = encode_json(manifest)
    arrays |= {"skew/map_beta": map_beta, "skew/table": table}
    _require_readable(raw, arrays, split)
    arrays["manifest"] = _to_array(raw)
    if split.root:
        arrays["hint"] = _to_array(encode_json({"root": split.root}))
        if len(arrays["hint"]) > MAX_HINT:
            n = len(split.root)
            raise UsageError(f"the path of the data set has {n} characters; shorten it")
    return arrays


def _to_array(text: bytes) -> Array:
    return np.frombuffer(text, np.uint8)


def _require_readable(manifest: bytes, arrays: dict[str, Array], split: FederatedSplit) -> None:
    """Raise where a reader would refuse the file."""
    if len(manifest) > MAX_MANIFEST:
        raise UsageError(
            f"the split needs a manifest of {len(manifest)} bytes, {MAX_MANIFEST} are allowed; "
            f"it has {len(split.source.class_names)} classes"
        )
    _require_size(arrays)
    faults = check_layout(arrays, split.recipe, split.source, split.overlaps)
    faults += parse_manifest(parse_json("manifest", manifest))[1]
    if faults:
        reasons = "; ".join(map(str, faults))
        raise UsageError(f"the split cannot be stored (docs/format.md): {reasons}")


def _require_size(arrays: Mapping[str, Array]) -> None:
    """Raise UsageError where arrays are more than a reader allows in all (rules 17 and 19)."""
    n_bytes = sum(array.nbytes for array in arrays.values())
    n_chunks = 0
    for array in arrays.values():
        sides = zip(array.shape, _chunk_shape(array), strict=True)
        n_chunks += math.prod(-(-n // side) for n, side in sides)
    for what, n, most in [("bytes", n_bytes, MAX_MEMORY), ("chunks", n_chunks, MAX_CHUNKS)]:
        if n > most:
            raise UsageError(
                f"the split needs arrays of {n} {what}, {most} are allowed (docs/format.md); "
                "make it of fewer rows or parties"
            )


def _build_image(arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of the HDF5 file.

    Made in memory, so that no fault of a disk happens inside the library, which crashes where it
    cannot finish what it has open. A large one is made in a `DiskImage`, which keeps such faults.
    """
    # Not the core driver's get_file_image: in HDF5 1.14 its superblock has a wrong checksum.
    image = io.BytesIO()
    _fill_image(arrays, image)
    return image.getvalue()


def _fill_image(arrays: Mapping[str, Array], image: io.BytesIO | DiskImage) -> None:
    """Write the HDF5 file.

    v110 has checksums on its own structures; fletcher32 covers the values.
    """
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, image)
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    group = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
    # Older h5py stamps groups with the time: two writes would differ.
    creation.set_obj_track_times(False)
    group.set_obj_track_times(False)
    groups = {path.partition("/")[0] for path in arrays if "/" in path}
    handle = h5py.h5f.create(b"split", h5py.h5f.ACC_TRUNC, creation, access)
    with h5py.File(handle) as file:
        for name in sorted(groups):
            h5py.h5g.create(file.id, name.encode(), gcpl=group)
        for path in sorted(arrays):
            _add_array(file, path, arrays[path], image)


def _add_array(file: h5py.File, path: str, array: Array, image: io.BytesIO | DiskImage) -> None:
    chunks = _chunk_shape(array)
    dataset = file.create_dataset(
        path,
        shape=array.shape,
        dtype=array.dtype.newbyteorder("<"),
        chunks=chunks,
        compression="gzip",
        compression_opts=4,
        shuffle=True,
        fletcher32=True,
    )
    # Whole chunks at a time: of an array in a file few are in memory at once.
    step = chunks[0] * max(1, _WRITTEN // (chunks[0] * math.prod(array.shape[1:])))
    for start in range(0, len(array), step):
        if isinstance(image, DiskImage) and image.is_over:
            return  # after a fault the rest would pile up in memory
        dataset[start : start + step] = array[start : start + step]
        release_pages(array)


def _chunk_shape(array: Array) -> tuple[int, ...]:
    fitting = min(_CHUNK, _CHUNK_BYTES // array.itemsize)
    most = max(1, fitting)  # values of a chunk
    n_rows = len(array)
    if array.ndim == 1:
        return (min(n_rows, most),)
    wide = min(most, array.shape[1])
    high = max(1, most // wide)
    return (min(n_rows, high), wide)
