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

from .device_features import put_channels_first


def party(
    split: SplitView | str | Path,
    p: int,
    *,
    part: Literal["train", "val", "test"] = "train",
    data: Data | None = None,
    data_root: str | Path | None = None,
    lossy: bool = False,
) -> TensorDataset:
    """Return one party's examples as a torch data set.

    It holds (x [...] float32, y int64): images as [C, H, W] in 0..1, with the split's fixed
    transforms, and without a run's augmentation and normalisation.

    Parameters
    ----------
    split : FederatedSplit, OpenedSplit, str or Path
        In memory, open, or the path of a split file. An open one (`niidpart.open`) opens the data
        set once; each party then costs time by its size.
    p : int
        The party, from 0.
    part : {"train", "val", "test"}
    data : Data, optional
        The data set; without it, it is opened.
    data_root : str or Path, optional
        Where the data set lies; without it, where the split's maker had it.
    lossy : bool
        Also where noise is drawn afresh in training, without that noise.

    Returns
    -------
    TensorDataset

    Raises
    ------
    IndexError
        There is no such party.
    UsageError
        p is no whole number, there is no such part, or the data is not that of the split.
    FileNotFoundError
        The data set is not where it was looked for.

    Examples
    --------
    >>> import fltrain, niidpart
    >>> split = niidpart.make(niidpart.load("digits"), strategy="homo", n_parties=10, seed=0)
    >>> x, y = fltrain.party(split, 3)[0]
    >>> x.shape
    torch.Size([1, 8, 8])
    """
    if isinstance(split, str | Path):
        with niidpart.open(split) as opened:
            return party(opened, p, part=part, data=data, data_root=data_root, lossy=lossy)
    if data is None:
        data = open_data(split, data_root)
    found = read_examples(split, data, p, part, lossy=lossy)
    x = put_channels_first(found.x)
    inputs = x.float().div_(255) if x.dtype == torch.uint8 else x.clone()
    labels = torch.from_numpy(np.ascontiguousarray(found.y))
    return TensorDataset(inputs, labels)
