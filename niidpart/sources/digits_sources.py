"""Handwritten and photographed digits of several data sets as one, where the group of an example is the set it is from."""

import importlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints, stream
from ..data import Data, chain_features, from_arrays, from_columns
from ..data.columns import Features
from ..data.readers.files import find_first_file
from ..data.readers.mat import read_digits_mat
from ..errors import UsageError
from ..splits.digests import encode_json, sha256
from .npz import npz

__all__ = ["digits_sources"]

SETS = ("mnist", "usps", "svhn", "synth", "mnist-m")


def digits_sources(
    root: str | Path,
    *,
    sources: Annotated[
        str, "Two or more of mnist,usps,svhn,synth,mnist-m; all: those that are there."
    ] = "all",
    fraction: Annotated[
        float, "Part of each set and class of the training part to take, above 0 and at most 1."
    ] = 1.0,
    size: Annotated[int | None, "Width and height of the images, 28 unless given."] = None,
    channels: Annotated[int | None, "1 (grey) or 3 (colours); 3 unless given."] = None,
    data_seed: Annotated[int, "Seed of what --fraction draws."] = 0,
) -> Data:
    """Two or more of MNIST, USPS, SVHN, SynthDigits and MNIST-M: uint8 [N, 28, 28, 3], 10 digits, groups are the sets, by name.

    root: a folder that holds `MNIST/raw`, `usps.bz2`, `train_32x32.mat`, `synth_train_32x32.mat`, each with its test file, as torchvision and the
    authors leave them, or an .npz of the set's name (mnist, usps, svhn, synth, mnist-m). Needs Pillow for features.
    As the digits of Li et al., ICDE 2022, figure 3b, and of FedBN, Li et al., ICLR 2021. Images are resized (bilinear) when they are asked for.
    """
    if not 0 < fraction <= 1:
        raise UsageError(
            f"fraction is {fraction}; it is the part of each set to take, above 0 and at most 1"
        )
    wanted = list(SETS) if sources == "all" else sources.split(",")
    if strange := [name for name in wanted if name not in SETS]:
        raise UsageError(f"sources has {strange[0]!r}; there are {', '.join(SETS)}")
    found = {
        name: data
        for name in SETS
        if name in wanted and (data := _one(name, Path(root))) is not None
    }
    if len(found) < 2 or (sources != "all" and len(found) < len(set(wanted))):
        looked = "MNIST/raw, usps[.bz2], train_32x32.mat, synth_train_32x32.mat (each with its test file) and SET.npz"
        there = ", ".join(found) or "none"
        raise FileNotFoundError(
            f"digits-sources needs {'two sets' if sources == 'all' else sources}, and {there} was found: looked for {looked} in {root}. Get them "
            f"with: python -c \"from torchvision.datasets import MNIST, USPS; MNIST('{root}', download=True); "
            f"[USPS('{root}', train=t, download=True) for t in (True, False)]\""
        )
    return _together(found, fraction, size or 28, channels or 3, data_seed)


def _together(
    found: dict[str, Data], fraction: float, size: int, channels: int, data_seed: int
) -> Data:
    rows = {name: _subset(name, d.labels, fraction, data_seed) for name, d in found.items()}
    tested = {
        name: d
        for name, d in found.items()
        if d.test_labels is not None and d.test_features is not None
    }
    train = [
        (_resized(d.features, size, channels, rows[name]), len(rows[name]))
        for name, d in found.items()
    ]
    test = [
        (_resized(d.test_features, size, channels), len(d.test_labels))
        for d in tested.values()
        if d.test_labels is not None
    ]
    return from_columns(
        np.concatenate([_digits(d)[rows[name]] for name, d in found.items()]),
        chain_features(*train),
        np.concatenate([_digits(d, test=True) for d in tested.values()]) if tested else None,
        chain_features(*test) if tested else None,
        groups=np.repeat(list(found), [n for _, n in train]),
        test_groups=np.repeat(list(tested), [n for _, n in test]) if tested else None,
        content_sha256=sha256(encode_json([[name, d.content_sha256] for name, d in found.items()])),
    )


def _one(name: str, root: Path) -> Data | None:
    """A set, if it lies there."""
    if (archive := find_first_file([root], f"{name}.npz")) is not None:
        return npz(archive)
    if name == "mnist-m":
        return None
    if name == "synth":
        places = [root, root / "SynthDigits"]
        pair = [find_first_file(places, f"synth_{part}_32x32.mat") for part in ("train", "test")]
        return (
            from_arrays(*read_digits_mat(pair[0]), *read_digits_mat(pair[1]))
            if pair[0] and pair[1]
            else None
        )
    module: Any = importlib.import_module(f".{name}", __package__)
    try:
        data: Data = getattr(module, name)(root)
    except FileNotFoundError:
        return None
    return data


def _digits(data: Data, test: bool = False) -> Ints:
    """[N] the digit of each example, which is the name of its class."""
    if not set(data.class_names) <= set("0123456789"):
        raise UsageError(
            f"a set of digits has the classes {', '.join(data.class_names[:12])}; 0 to 9 are needed"
        )
    labels = data.test_labels if test else data.labels
    return np.array([int(k) for k in data.class_names], np.int64)[labels]


def _subset(name: str, labels: Ints, fraction: float, data_seed: int) -> Ints:
    """[n] ascending: of each class its share, rounded down and at least one."""
    share = Fraction(repr(fraction)).limit_denominator(10**9)
    K = int(labels.max()) + 1
    order = stream(data_seed, "digits-sources", name).grouped_permutation(labels, K)
    sizes = np.bincount(labels, minlength=K)
    place = np.arange(len(labels)) - np.repeat(np.cumsum(sizes, dtype=np.int64) - sizes, sizes)
    keep = np.maximum(sizes * share.numerator // share.denominator, 1)
    return np.sort(order[place < np.repeat(keep, sizes)])


def _resized(
    features: Features | None, size: int, channels: int, rows: Ints | None = None
) -> Features:
    """Features [n, size, size] or [n, size, size, 3] uint8 of images of any size; rows: those that are there."""
    if features is None:
        raise UsageError("a set of digits has labels and no images")

    def of(at: Ints | slice) -> NDArray[Any]:
        x = features(at if rows is None else rows[at])
        if x.dtype != np.uint8:
            raise UsageError(f"images are {x.dtype}; uint8 is needed")
        return (
            np.stack(_scaled(x, size, channels))
            if len(x)
            else np.zeros((0, size, size, *([3] if channels == 3 else [])), np.uint8)
        )

    return of


def _scaled(x: NDArray[Any], size: int, channels: int) -> Sequence[NDArray[Any]]:
    from PIL import Image

    mode = "RGB" if channels == 3 else "L"
    images = (
        Image.fromarray(a[..., 0] if a.ndim == 3 and a.shape[2] == 1 else a).convert(mode)
        for a in x
    )
    return [
        np.asarray(
            i if i.size == (size, size) else i.resize((size, size), Image.Resampling.BILINEAR)
        )
        for i in images
    ]
