"""Spoken digits by speaker: the Free Spoken Digit Dataset's recordings."""

import re
from pathlib import Path

import numpy as np

from ..arithmetic.rng import Ints
from ..data import Array, Data, DataSource, Features, from_columns, resolve_rows
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, digest_files, require_published_counts
from ..data.readers.images import Checksum
from ..data.readers.wav import draw_spectrogram, read_wav
from ..errors import FileFault

_NAME = re.compile(r"(\d)_([A-Za-z]+)_(\d+)\.wav")
_RATE = 8_000  # samples a second
_N_TEST = 5  # recordings of each digit and speaker that are the test set: those with 0 to 4
_REPOSITORY = "https://github.com/Jakobovski/free-spoken-digit-dataset"

PLACES = DataPlaces(
    title="spoken digits",
    folders=("recordings", "free-spoken-digit-dataset/recordings", "fsdd/recordings", ""),
    forms=(("[0-9]_*_*.wav",),),
    get=f"git clone --branch v1.0.10 {_REPOSITORY} {{root}}/free-spoken-digit-dataset",
)


def spoken_digits(
    root: str | Path, *, checksum: Checksum = True, any_size: AnySize = False
) -> Data:
    """Spoken digits: 2,700 recordings by six speakers, 300 for the test, float32 [N, 64, 64].

    Jackson et al., Free Spoken Digit Dataset, version 1.0.10. Groups are the speakers, by name, of
    the test set too, which are the recordings 0 to 4 of each digit, as the authors have it.
    Features are drawn when they are asked for: a second at 8 kHz as loudness (0 silence, 1 the
    loudest) by pitch and time.

    Parameters
    ----------
    root : path
        The folder that holds `recordings`, or the repository.
    checksum : bool
        The bytes of the files are part of the data's identity; else their names and sizes.
    any_size : bool
        Take another number of recordings or speakers than that version has.
    """
    recordings = [_read_name(path) for path in PLACES.require(root)]
    recordings.sort()
    train = [each for each in recordings if each[2] >= _N_TEST]
    test = [each for each in recordings if each[2] < _N_TEST]
    require_published_counts(
        "spoken digits",
        got=(len(train), len(test), len({speaker for speaker, *_ in recordings})),
        published=(2_700, 300, 6),
        kinds=("training recordings", "test recordings", "speakers"),
        any_size=any_size,
    )
    paths, test_paths = [path for *_, path in train], [path for *_, path in test]
    return from_columns(
        np.array([digit for _, digit, _, _ in train]),
        _make_features(paths),
        np.array([digit for _, digit, _, _ in test]) if test else None,
        _make_features(test_paths) if test else None,
        groups=np.array([speaker for speaker, *_ in train]),
        test_groups=np.array([speaker for speaker, *_ in test]) if test else None,
        content_sha256=digest_files([paths, test_paths], checksum),
    )


def _read_name(path: Path) -> tuple[str, int, int, Path]:
    """Return (speaker, digit, which recording of these, file)."""
    found = _NAME.fullmatch(path.name)
    if found is None:
        raise FileFault(f"{path} is not called DIGIT_SPEAKER_NUMBER.wav; name it so, or remove it")
    digit, speaker, number = found.groups()
    return speaker, int(digit), int(number), path


def _make_features(paths: list[Path]) -> Features:
    def read_features(rows: Ints | slice) -> Array:
        asked = [paths[i] for i in resolve_rows(rows, len(paths)).tolist()]
        drawn = [_draw(path) for path in asked]
        return np.stack(drawn) if drawn else np.zeros((0, 64, 64), np.float32)

    return read_features


def _draw(path: Path) -> Array:
    samples, rate = read_wav(path)
    if rate != _RATE:
        raise FileFault(f"{path} has {rate:,} samples a second; {_RATE:,} are needed")
    return draw_spectrogram(samples, _RATE)


ENTRY = DataSource(load=spoken_digits, places=PLACES, paper="jackson2018spoken")
