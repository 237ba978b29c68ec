"""Parkinson's telemonitoring: voice recordings by patient, as UCI has them."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from ..data import Data, DataSource, from_arrays
from ..data.places import DataPlaces
from ..data.quantiles import Quantiles, number_by_quantiles
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.named_numbers import read_named_numbers

_PATIENT = "subject#"
_SCORES = ("motor_UPDRS", "total_UPDRS")
_VOICE = (
    *("Jitter(%)", "Jitter(Abs)", "Jitter:RAP", "Jitter:PPQ5", "Jitter:DDP", "Shimmer"),
    *("Shimmer(dB)", "Shimmer:APQ3", "Shimmer:APQ5", "Shimmer:APQ11", "Shimmer:DDA"),
    *("NHR", "HNR", "RPDE", "DFA", "PPE"),
)
_FEATURES = ("age", "sex", "test_time", *_VOICE)
_ARCHIVE = "https://archive.ics.uci.edu/static/public/189/parkinsons+telemonitoring.zip"

PLACES = DataPlaces(
    title="Parkinson's telemonitoring",
    folders=("", "parkinsons", "telemonitoring"),
    forms=(("parkinsons_updrs.data",),),
    get=f"curl -o {{root}}/voice.zip '{_ARCHIVE}' && unzip -d {{root}} {{root}}/voice.zip",
)


def parkinsons(
    root: str | Path,
    *,
    score: Annotated[
        Literal["total", "motor"], "Which score on the UPDRS scale makes the classes."
    ] = "total",
    quantiles: Quantiles = "0.5",
    any_size: AnySize = False,
) -> Data:
    """Parkinson's telemonitoring: 5,875 recordings of 42 patients, float64 [N, 19], by score.

    Tsanas, Little, McSharry and Ramig, IEEE TBME 57(4), 2010. Groups are the patients, by their
    number. The target is a number: its classes are cut at quantiles of all rows. There is no test
    set. Needs pyarrow.

    Parameters
    ----------
    root : path
        The folder that holds `parkinsons_updrs.data`.
    score : str
        "total" or "motor": which score makes the classes.
    quantiles : str
        Shares of the rows at which the score is cut into classes.
    any_size : bool
        Take a file with other counts than the published ones.
    """
    [path] = PLACES.require(root)
    held = read_named_numbers([path], [_PATIENT, *_SCORES, *_FEATURES])
    patient = held[_PATIENT].astype(np.int64)
    require_published_counts(
        "Parkinson's telemonitoring",
        got=(len(patient), len(np.unique(patient))),
        published=(5_875, 42),
        kinds=("recordings", "patients"),
        any_size=any_size,
    )
    what = f"{score}_UPDRS"
    labels, names = number_by_quantiles(held[what], quantiles, what)
    x = np.stack([held[name] for name in _FEATURES], axis=1)
    return from_arrays(x, labels, groups=patient, class_names=names)


ENTRY = DataSource(load=parkinsons, places=PLACES, paper="tsanas2010telemonitoring")
