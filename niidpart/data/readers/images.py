"""Encoded images become arrays: Pillow reads them, and all of a data set get one size and one number of channels."""

import contextlib
import io
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FileFault, UsageError

Size = Annotated[int | None, "Width and height that all images are brought to, 1 to 4096."]
Channels = Annotated[int | None, "1 (grey) or 3 (colours); else as the first image has it."]
Checksum = Annotated[
    bool,
    "The bytes of the files are part of the data's identity (one pass over them); else their names and sizes.",
]

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM", "TIFF")  # none that runs another program
_GREY = ("1", "L", "LA", "I;16", "I", "F")


class Decoder:
    """Decodes images of one data set, all as the first one is: [n, H, W] for grey ones, [n, H, W, 3] for others, uint8.

    first(): the first training image, as bytes or a path. size: all are resized to size x size (bilinear). channels: 1 or 3, whatever the first is.
    """

    def __init__(self, first: Callable[[], bytes | Path], size: int | None, channels: int | None):
        if size is not None and not 1 <= size <= 4096:
            raise UsageError(
                f"size is {size}; the width and height of the images, 1 to 4096, is needed"
            )
        if channels not in (None, 1, 3):
            raise UsageError(f"channels is {channels}; it must be 1 (grey) or 3 (colours)")
        self._first, self._size, self._channels = first, size, channels

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """(H, W) or (H, W, 3) of every image, from the header of the first."""
        with _careful(self._first()) as image:
            grey = image.mode in _GREY if self._channels is None else self._channels == 1
            width, height = (self._size, self._size) if self._size else image.size
        return (height, width) if grey else (height, width, 3)

    def __call__(self, images: Sequence[bytes | Path], names: Sequence[str]) -> NDArray[Any]:
        """[n, *shape] uint8. names: what to call each in an error."""
        out = np.empty((len(images), *self.shape), np.uint8)
        for i, (image, name) in enumerate(zip(images, names, strict=True)):
            out[i] = self._one(image, name)
        return out

    def _one(self, encoded: bytes | Path, name: str) -> NDArray[Any]:
        from PIL import Image

        height, width = self.shape[:2]
        grey = len(self.shape) == 2
        with _careful(encoded, name) as image:
            if self._channels is None and grey and image.mode not in _GREY:
                raise UsageError(
                    f"{name} has colours ({image.mode}) and the first image has none; say --channels 1 or 3"
                )
            if not self._size and image.size != (width, height):
                got = f"{name} is {image.size[0]} x {image.size[1]}, the first image {width} x {height}"
                raise UsageError(f"{got}; say --size {min(width, height)} to make all of one size")
            if image.mode in ("I", "I;16", "F"):
                raise UsageError(
                    f"{name} has pixels of more than 8 bits ({image.mode}); convert the images to 8 bits first"
                )
            plain = image.convert("L" if grey else "RGB")
            return np.asarray(
                plain
                if plain.size == (width, height)
                else plain.resize((width, height), Image.Resampling.BILINEAR)
            )


@contextlib.contextmanager
def _careful(encoded: bytes | Path, name: str = "") -> Iterator[Any]:
    """An image, opened by Pillow; whatever that finds wrong, and an image too large to be one, is a FileFault that names it."""
    from PIL import Image

    faults = (
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
        SyntaxError,
        EOFError,
        OverflowError,
        MemoryError,
        struct.error,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter(
                "error", Image.DecompressionBombWarning
            )  # one that unpacks to gigabytes
            with Image.open(
                io.BytesIO(encoded) if isinstance(encoded, bytes) else encoded, formats=_FORMATS
            ) as image:
                yield image
    except (OSError, *faults) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's own error
        said = name or (str(encoded) if isinstance(encoded, Path) else "the first image")
        raise FileFault(
            f"{said} cannot be read as an image ({type(error).__name__}: {str(error)[:200]})"
        ) from error
