"""Landmine detection: radar signatures by field, as their authors' MATLAB file has them."""

from pathlib import Path

import numpy as np

from ..data import Data, DataSource, from_arrays
from ..data.places import DataPlaces
from ..data.readers.files import AnySize, require_published_counts
from ..data.readers.mat import read_tasks_mat
from ..errors import FileFault

_FILE = "LandmineData.mat"
_RAW = "https://raw.githubusercontent.com/daizhongxiang/Federated_Bayesian_Optimization/master"

PLACES = DataPlaces(
    title="landmine",
    folders=("", "landmine", "landmine_data"),
    forms=((_FILE,),),
    get=f"curl -O --output-dir {{root}} {_RAW}/{_FILE}",
)


def landmine(root: str | Path, *, any_size: AnySize = False) -> Data:
    """Landmine detection: 14,820 radar signatures of 29 fields, float64 [N, 9], clutter or mine.

    Xue, Liao, Carin and Krishnapuram, JMLR 8, 2007. Groups are the fields, 1 to 29: the first 15
    are covered with leaves, the others bare. 904 signatures are of mines: accuracy says
    little here, look at a metric that counts both classes. There is no test set.

    Parameters
    ----------
    root : path
        The folder that holds `LandmineData.mat`.
    any_size : bool
        Take a file with other counts than the published ones.
    """
    [path] = PLACES.require(root)
    fields = read_tasks_mat(path, "feature", "label")
    labels = np.concatenate([y for _, y in fields])
    if not np.isin(labels, (0, 1)).all():
        raise FileFault(f"{path} has other labels than 0 and 1; fetch it again")
    require_published_counts(
        "landmine",
        got=(len(labels), len(fields)),
        published=(14_820, 29),
        kinds=("signatures", "fields"),
        any_size=any_size,
    )
    sizes = [len(y) for _, y in fields]
    return from_arrays(
        np.concatenate([x for x, _ in fields]),
        labels.astype(np.int64),
        groups=np.repeat(np.arange(1, len(fields) + 1), sizes),
        class_names=("clutter", "mine"),
    )


ENTRY = DataSource(load=landmine, places=PLACES, paper="xue2007multitask")
