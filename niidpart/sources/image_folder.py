"""Images in folders that are named after their classes."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data, from_columns
from ..data.columns import Features, resolve_rows
from ..data.readers.files import digest_files
from ..data.readers.images import ENDINGS, Channels, Checksum, Decoder, Size

__all__ = ["image_folder"]


def image_folder(
    root: str | Path, *, size: Size = None, channels: Channels = None, checksum: Checksum = True
) -> Data:
    """A folder with a folder of images for each class; or with `train` and `test` (else `val`) that are such folders. uint8 [N, H, W] or
    [N, H, W, 3]; images are decoded when they are asked for. Rows are in the order of class, then path.

    Needs Pillow for features, not for labels.
    """
    base = Path(root)
    if not base.is_dir():
        raise FileNotFoundError(
            f"there is no folder {base}; one with a folder of images for each class is needed"
        )
    train_folder = base / "train" if (base / "train").is_dir() else base
    test_folder = next(
        (
            base / name
            for name in ("test", "val")
            if train_folder != base and (base / name).is_dir()
        ),
        None,
    )
    train = _images(train_folder)
    if not train:
        looked = f"looked for CLASS/*{{{','.join(ENDINGS)}}} in {base / 'train'} and {base}"
        hint = (
            "; a folder of parquet or arrow files is read with --dataset hf:FOLDER"
            if any(base.rglob("*.parquet"))
            else ""
        )
        raise FileNotFoundError(
            f"{base} has no folders of images: {looked}. Put the images of each class in a folder of its name{hint}"
        )
    test = _images(test_folder) if test_folder else []
    decoder = Decoder(lambda: train[0][1], size, channels)
    return from_columns(
        np.array([name for name, _ in train]),
        _features([p for _, p in train], decoder),
        np.array([name for name, _ in test]) if test else None,
        _features([p for _, p in test], decoder) if test else None,
        content_sha256=digest_files([[p for _, p in part] for part in (train, test)], checksum),
    )


def _images(folder: Path) -> list[tuple[str, Path]]:
    """(class, image) of a folder, sorted by class and by path within it, in the order of code points; hidden ones are passed over."""
    found = []
    for entry in sorted(
        entry.name
        for entry in os.scandir(folder)
        if entry.is_dir() and not entry.name.startswith(".")
    ):
        inside = []
        for where, _, files in os.walk(folder / entry):
            relative = Path(where).relative_to(folder / entry)
            if not any(part.startswith(".") for part in relative.parts):
                inside += [
                    (relative / f).as_posix()
                    for f in files
                    if f.lower().endswith(ENDINGS) and not f.startswith(".")
                ]
        found += [(entry, folder / entry / path) for path in sorted(inside)]
    return found


def _features(paths: list[Path], decoder: Decoder) -> Features:
    def features(rows: Ints | slice) -> NDArray[Any]:
        at = [paths[i] for i in resolve_rows(rows, len(paths)).tolist()]
        return decoder(at, [str(p) for p in at])

    return features
