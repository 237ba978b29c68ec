"""`party`: one party's examples as a torch data set."""

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch.utils.data import TensorDataset

import niidpart
from niidpart.data import Data
from niidpart.data.of_split import open_data
from niidpart.features.examples import read_examples
from niidpart.splits.view import SplitView

from .federated import put_channels_first


def party(
    split: SplitView | str | Path,
    p: int,
    *,
    part: Literal["train", "val", "test"] = "train",
    data: Data | None = None,
    data_root: str | Path | None = None,
    lossy: bool = False,
) -> TensorDataset:
    """Party p of a split as a torch data set of (x [...] float32, y int64): images as [C, H, W] in 0..1, with the split's fixed transforms.

    split: in memory, open, or the path of a split file. An open one (`niidpart.open`) opens the data set once; each party then costs time by its
    size. data, data_root: the data set, or where it lies; without them, where its maker had it. lossy: also where noise is drawn afresh in
    training, without that noise; augmentation and normalisation are the run's and not in here either. IndexError where there is no such party;
    ValueError where p is no whole number, and where the data set is not found, is another, or has no features.
    """
    if isinstance(split, str | Path):
        with niidpart.open(split) as opened:
            return party(opened, p, part=part, data=data, data_root=data_root, lossy=lossy)
    if data is None:
        data = open_data(split, data_root)
    found = read_examples(split, data, p, part, lossy=lossy)
    x = put_channels_first(found.x)
    return TensorDataset(
        x.float().div_(255) if x.dtype == torch.uint8 else x.float(),
        torch.from_numpy(np.ascontiguousarray(found.y)),
    )
