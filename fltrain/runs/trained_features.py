"""What a trained model makes of examples: the numbers before its last layer, party by party."""

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from niidpart.arithmetic.exact import Floats
from niidpart.arithmetic.rng import Ints
from niidpart.errors import UsageError
from niidpart.files import write_whole

from .. import tree
from ..engine.jobs import Cell
from ..engine.scoring import evaluation_batch_size
from ..inputs.federated import Federated
from ..interface import Algorithm, Served
from .folder import RunFolder
from .restoring import load_request
from .starting import move_state
from .training import prepare


class TrainedFeatures(NamedTuple):
    """Features of training examples.

    Attributes
    ----------
    x : array [n, D]
        The input of the model's last layer, in eval mode, from what the party is served.
    y : array [n]
        Classes.
    party : array [n]
        Who holds the example.
    round : int
        After which the model was taken.
    """

    x: Floats
    y: Ints
    party: Ints
    round: int

    def write(self, place: str | Path) -> None:
        """Write a data set whose groups are the parties: an .npz with x, y, group.

        Parameters
        ----------
        place : path
            A file that ends in .npz.
        """
        buffer = io.BytesIO()
        np.savez_compressed(buffer, x=self.x.astype(np.float32), y=self.y, group=self.party)
        write_whole(Path(place), buffer.getvalue())


def read_features(
    run: str | Path,
    *,
    sample: int = 1000,
    data_root: str | Path | None = None,
    trust: bool = False,
    algorithm: Algorithm | None = None,
    model: torch.nn.Module | None = None,
) -> TrainedFeatures:
    """Return what the model of a run makes of about `sample` training examples.

    As many of each party, evenly along its rows, as the party sees them, from the model that it is
    served after the newest checkpoint. Li et al., ICDE 2022, Figure 3b.

    Parameters
    ----------
    run : path
        The folder of a run.
    sample : int
        Examples, of all parties together.
    data_root : path, optional
        Where the data lies, if elsewhere than it was.
    trust : bool
        Run the code outside fltrain that the folder names.
    algorithm, model : optional
        Those of the run, where they have no name.

    Returns
    -------
    TrainedFeatures

    Raises
    ------
    UsageError
        The model has no last layer whose input could be taken.
    RunError
        The run is damaged, or has no checkpoint.

    Examples
    --------
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=4)
    >>> run = fltrain.run(split, rounds=1, local_epochs=1, out="seen")
    >>> read_features("seen", sample=100).x.shape
    (100, 200)
    """
    folder = RunFolder.open(run)
    request = load_request(
        folder, algorithm=algorithm, model=model, data_root=data_root, trust=trust
    )
    (cell,) = prepare([request], None, 1).cells
    if cell.task.features_fault:
        raise UsageError(f"{run} has no features: {cell.task.features_fault}")
    round, state = folder.restore()
    state = move_state(state, cell.data.device)
    served = cell.algorithm.serve(state, cell.algorithm.hyper)
    places = _choose_places(cell.data, sample)
    features = [_compute(cell, served, party, its) for party, its in enumerate(places)]
    lengths = sorted({of_party.shape[1] for of_party in features})
    if len(lengths) > 1:
        raise UsageError(
            f"{run} has models whose features are of {', '.join(map(str, lengths))} numbers, and a "
            "data set has one number of them; take a run whose models have as many"
        )
    chosen = torch.cat(places)
    examples = cell.data.train
    return TrainedFeatures(
        x=torch.cat(features).double().cpu().numpy(),
        y=examples.y[chosen].cpu().numpy(),
        party=examples.party[chosen].cpu().numpy(),
        round=round,
    )


def _choose_places(data: Federated, sample: int) -> list[Tensor]:
    """Return for each party the places of its examples, evenly along its rows."""
    n_parties = len(data.train.indptr) - 1
    of_each = max(sample // n_parties, 1)
    chosen = []
    for party in range(n_parties):
        start, held = data.train.indptr[party], data.train.size(party)
        n = min(of_each, held)
        steps = torch.arange(n, device=data.device)
        chosen.append(start + steps * held // max(n, 1))
    return chosen


@torch.no_grad()
def _compute(cell: Cell, served: Served, party: int, places: Tensor) -> Tensor:
    """Return the features [n, D] of examples of a party, from the model that it is served."""
    which = served.which.tolist()
    number = which[party] if len(which) > 1 else which[0]
    params = tree.index(served.models, number)
    buffers = tree.index(served.buffers, number)
    features = []
    for some in torch.split(places, evaluation_batch_size(cell.data.device)):
        x = cell.data.train.inputs(some)
        out = cell.task.forward(params, buffers, x, train=False)
        features.append(out.features.flatten(1))
    return torch.cat(features)
