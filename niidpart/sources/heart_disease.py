"""Heart disease of four hospitals, as UCI has them."""

from pathlib import Path

import numpy as np

from ..arithmetic.exact import Floats
from ..data import Data, DataSource, from_arrays
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.number_rows import read_number_rows
from ..errors import FileFault

_HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
_N_COLUMNS = 14  # 13 measurements and the diagnosis, 0 to 4
_MISSING = "?"
# Slope, vessels and thal are not known of most patients outside of Cleveland.
_USED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
_CATEGORIES = {2: (2.0, 3.0, 4.0), 6: (1.0, 2.0)}  # the kind of pain, the ECG: but for the first
_PUBLISHED = (303, 261, 46, 130)  # complete patients: Terrail et al., table 1
_ARCHIVE = "https://archive.ics.uci.edu/static/public/45/heart+disease.zip"

PLACES = DataPlaces(
    title="heart disease",
    folders=("", "heart-disease", "heart+disease", "heart_disease"),
    forms=(tuple(f"processed.{hospital}.data" for hospital in _HOSPITALS),),
    get=f"curl -o {{root}}/heart.zip {_ARCHIVE} && unzip -d {{root}} {{root}}/heart.zip",
)


def heart_disease(root: str | Path, *, any_size: AnySize = False) -> Data:
    """Heart disease: 740 patients of four hospitals, float64 [N, 13], healthy or ill.

    Detrano et al., American Journal of Cardiology 64, 1989. Groups are the hospitals, by name. As
    in FLamby (du Terrail et al., NeurIPS 2022): of 920 patients those who lack none of ten
    measurements; slope, vessels and thal are left out, the kinds of pain and of ECG are 0 and 1 for
    each but the first. There is no test set.

    Parameters
    ----------
    root : path
        The folder that holds `processed.cleveland.data` and the other three.
    any_size : bool
        Take files with other counts than the published ones.
    """
    tables = [_read_complete(path) for path in PLACES.require(root)]
    sizes = [len(table) for table in tables]
    require_published_counts(
        "heart disease",
        got=sizes,
        published=_PUBLISHED,
        kinds=[f"patients of {hospital}" for hospital in _HOSPITALS],
        any_size=any_size,
    )
    rows = np.concatenate(tables)
    return from_arrays(
        _make_features(rows),
        (rows[:, -1] > 0).astype(np.int64),
        groups=np.repeat(np.array(_HOSPITALS), sizes),
        class_names=("healthy", "ill"),
    )


def _read_complete(path: Path) -> Floats:
    """Return [n, 14] the patients of a hospital of whom all that is used is known."""
    rows = read_number_rows(path, _N_COLUMNS, _MISSING)
    if not np.isin(rows[:, -1], range(5)).all():
        raise FileFault(f"{path} has other diagnoses than 0 to 4; fetch it again")
    is_complete = np.isfinite(rows[:, list(_USED)]).all(axis=1)
    return rows[is_complete]


def _make_features(rows: Floats) -> Floats:
    """Return [n, 13]: plain measurements first, then a column of 0 and 1 for each category."""
    columns = [rows[:, place] for place in _USED if place not in _CATEGORIES]
    for place, values in _CATEGORIES.items():
        columns += [(rows[:, place] == value).astype(np.float64) for value in values]
    return np.stack(columns, axis=1)


ENTRY = DataSource(load=heart_disease, places=PLACES, paper="detrano1989heart")
