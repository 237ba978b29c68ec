"""The door to training: `run`; `resuming` has those to runs that were stopped.

All lead one way, from requests to outcomes: a run is trained as one of several side by side.
"""

from pathlib import Path
from typing import Unpack

from torch import nn

import niidpart
from niidpart.data import Data
from niidpart.hub.fetching import read_local_or_published

from ..engine.ranks import join_ranks
from ..interface import Algorithm
from ..settings import SettingValues
from ..tasks.losses import OwnFunction
from .events import OnProgress, ignore
from .initial_weights import InitFrom, read_initial_weights
from .objective import AskedMetrics, resolve_objective
from .opening import NewFolders
from .outcome import Run
from .requests import Split, resolve_request
from .tracking import Track, resolve_trackers
from .training import train_alone


@join_ranks()
def run(
    split: Split,
    data: Data | None = None,
    *,
    algorithm: Algorithm | str = "fedavg",
    model: nn.Module | str | None = None,
    preset: str | None = None,
    init_from: InitFrom = None,
    init_from_partial: bool = False,
    loss: str | OwnFunction | None = None,
    metrics: AskedMetrics = (),
    data_root: str | Path | None = None,
    out: str | Path | None = None,
    progress: OnProgress = ignore,
    track: Track = (),
    **settings: Unpack[SettingValues],
) -> Run:
    """Train an algorithm on a split.

    Parameters
    ----------
    split : path, str or FederatedSplit
        A split file, `hub:USER/NAME[@REV]` for a published one, or a split in memory.
    data : Data, optional
        Its data set; None to read it from `data_root`, or from where the file says it is.
    algorithm : Algorithm or str
        Such as `fltrain.algorithms.fedprox(mu=0.1)`, or a name: "fedprox", `file.py:function`.
    model : Module or str, optional
        A name, `file.py:function`, or a module; None for the papers' model of such data. Names with
        a + between are models that parties take turns in (FedProto, SOLO).
    preset : str, optional
        The setting of a paper (`fltrain presets`), for all that is not given here; its options of
        the algorithm count where that is given by name.
    init_from : path or dict, optional
        Weights to begin with: a safetensors file, one that `torch.save` made of a state_dict, or a
        state_dict.
    init_from_partial : bool
        What of them does not fit the model is left out, with a warning that names it.
    loss : str or callable, optional
        `file.py:function`, or a function (logits [B, K], classes [B]) -> mean loss; None for cross
        entropy.
    metrics : str, callable, or several
        Besides accuracy and loss: names ("macro-f1"), `file.py:function`, or functions (logits
        [n, K], classes [n]) -> number (docs/training.md).
    data_root, out : path, optional
        The folder of the data set; the run folder, None to write nothing.
    progress : callable
        Called with an `fltrain.Progress` after each job and each round.
    track : str, callable, or several
        Trackers by name (tensorboard, wandb, mlflow; NAME=PLACE), `file.py:function`, or functions
        (docs/trackers.md). The run folder is the same with and without them.
    **settings
        The fields of `Settings`: rounds, local_epochs, batch_size, lr, ...

    Returns
    -------
    Run

    Raises
    ------
    UsageError, Diverged
        For what was asked wrongly; where training leaves the finite numbers.

    Examples
    --------
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5, seed=0)
    >>> run(split, rounds=1, local_epochs=1).history[-1]["round"]
    1
    """
    trackers = resolve_trackers(track)
    if not isinstance(split, niidpart.FederatedSplit):
        split = read_local_or_published(split)
    request = resolve_request(
        split,
        algorithm=algorithm,
        model=model,
        preset=preset,
        data_root=data_root,
        settings=settings,
        objective=resolve_objective(loss, metrics),
        weights=read_initial_weights(init_from, init_from_partial),
    )
    return train_alone(request, data, progress, new=NewFolders.of_one(out), trackers=trackers)
