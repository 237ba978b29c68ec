"""School: examination scores of pupils by school, as MALSAR's MATLAB file has them."""

from pathlib import Path

import numpy as np

from ..data import Data, DataSource, from_arrays
from ..data.places import DataPlaces
from ..data.quantiles import Quantiles, number_by_quantiles
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.mat import read_tasks_mat

_RAW = "https://raw.githubusercontent.com/jiayuzhou/MALSAR/master/data"

PLACES = DataPlaces(
    title="school",
    folders=("", "school", "MALSAR/data"),
    forms=(("school.mat",),),
    get=f"curl -O --output-dir {{root}} {_RAW}/school.mat",
)


def school(root: str | Path, *, quantiles: Quantiles = "0.5", any_size: AnySize = False) -> Data:
    """School: 15,362 pupils of 139 schools in London, float64 [N, 28], by examination score.

    The data of the Inner London Education Authority; Goldstein, The Statistician 40, 1991. Groups
    are the schools, 1 to 139. Features are the year, two percentages of the school's pupils,
    properties of pupil and school as 0 and 1, and a constant. The target is a number: its classes
    are cut at quantiles of all rows. There is no test set.

    Parameters
    ----------
    root : path
        The folder that holds `school.mat`.
    quantiles : str
        Shares of the rows at which the score is cut into classes.
    any_size : bool
        Take a file with other counts than the published ones.
    """
    [path] = PLACES.require(root)
    schools = read_tasks_mat(path, "X", "Y")
    scores = np.concatenate([y for _, y in schools])
    require_published_counts(
        "school",
        got=(len(scores), len(schools)),
        published=(15_362, 139),
        kinds=("pupils", "schools"),
        any_size=any_size,
    )
    labels, names = number_by_quantiles(scores, quantiles, "score")
    sizes = [len(y) for _, y in schools]
    return from_arrays(
        np.concatenate([x for x, _ in schools]),
        labels,
        groups=np.repeat(np.arange(1, len(schools) + 1), sizes),
        class_names=names,
    )


ENTRY = DataSource(load=school, places=PLACES, paper="goldstein1991school")
