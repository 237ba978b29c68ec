"""CIFAR-10 and MNIST as the rivals' own scripts look for them, written from the files at hand."""

import io
import json
import pickle
import shutil
import struct
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from PIL import Image

import niidpart

__all__ = ["lay_out"]

BATCHES = "cifar-10-batches-py"
ARCHIVE = "cifar-10-python.tar.gz"
MNIST = Path("MNIST", "raw")
HUB = Path("uoft-cs", "cifar10")
ROWS = 10_000
ANIMALS = ["bird", "cat", "deer", "dog", "frog", "horse"]
CLASSES = ["airplane", "automobile", *ANIMALS, "ship", "truck"]


def lay_out(source: Path, place: Path) -> None:
    """Write in `place` what torchvision, pfl-research and Flower would have downloaded.

    `source` holds MNIST/raw, and cifar10.npz or cifar-10-batches-py.
    """
    if (place / ARCHIVE).exists():
        return
    data = _load_cifar(source)
    (place / HUB).mkdir(parents=True, exist_ok=True)
    _write_table(place / HUB / "train.parquet", data.features(slice(None)), data.labels)
    _write_table(place / HUB / "test.parquet", data.test_features(slice(None)), data.test_labels)
    (place / BATCHES).mkdir(parents=True, exist_ok=True)
    for name, content in _list_batches(data):
        with (place / BATCHES / name).open("wb") as file:
            _Python2Pickler(file, protocol=2).dump(content)
    shutil.copytree(source / MNIST, place / MNIST, dirs_exist_ok=True)
    unfinished = place / "unfinished"
    with tarfile.open(unfinished, "w:gz", compresslevel=1) as archive:
        archive.add(place / BATCHES, BATCHES)
    unfinished.rename(place / ARCHIVE)


class _Python2Pickler(pickle._Pickler):
    """Writes bytes as Python 2 did, so that `encoding` says what a reader gets: bytes or str."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_bytes(self, text: bytes) -> None:
        self.write(pickle.BINSTRING + struct.pack("<i", len(text)) + text)
        self.memoize(text)

    dispatch[bytes] = save_bytes


def _load_cifar(source: Path) -> niidpart.Data:
    packed = source / "cifar10.npz"
    if packed.exists():
        return niidpart.load("npz", packed)
    return niidpart.load("cifar10", source)


def _write_table(path: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """Write images as PNG and their labels, as the Hub's uoft-cs/cifar10 has them."""
    rows = [{"bytes": _encode(image), "path": None} for image in images]
    picture = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    features = {"img": {"_type": "Image"}, "label": {"names": CLASSES, "_type": "ClassLabel"}}
    schema = pyarrow.schema(
        [("img", picture), ("label", pyarrow.int64())],
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )
    columns = {"img": rows, "label": labels.tolist()}
    pyarrow.parquet.write_table(pyarrow.table(columns, schema=schema), path)


def _encode(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png", compress_level=1)
    return file.getvalue()


def _list_batches(data: niidpart.Data) -> Iterator[tuple[str, dict[bytes, object]]]:
    """Give (name, content) of each file of the data set's python version, without file names."""
    images, labels = data.features(slice(None)), data.labels
    for number, start in enumerate(range(0, len(labels), ROWS), 1):
        rows = slice(start, start + ROWS)
        yield f"data_batch_{number}", _batch(images[rows], labels[rows])
    yield "test_batch", _batch(data.test_features(slice(None)), data.test_labels)
    names = [name.encode() for name in CLASSES]
    yield "batches.meta", {b"label_names": names, b"num_vis": 3072}


def _batch(images: np.ndarray, labels: Iterable[int]) -> dict[bytes, object]:
    """Return a batch as the data set's authors have it: three planes a row."""
    planes = np.moveaxis(np.asarray(images), -1, 1).reshape(len(images), -1)
    return {b"data": np.ascontiguousarray(planes), b"labels": [int(label) for label in labels]}
