"""The last layer of the last model trained once more, on features drawn like those of each class.

CCVR: Luo et al., NeurIPS 2021. Each party sends how many features it has of each class, their mean
and their covariance; the server draws features like them, as many of each class, and trains on
these.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..counting import ceil_div
from ..draws import fold, key, order
from ..engine.evaluation import evaluate
from ..engine.jobs import Cell
from ..engine.scoring import Score, evaluation_batch_size
from ..interface import Batch, Served, State
from ..job import Out
from ..linear_head import LinearHead, find_linear_head
from ..tree import Tree
from .class_gaussians import count_numbers, draw_features, measure_class, merge_gaussians
from .traffic import count_model_bytes

CALIBRATED = "calibrated_"  # begins the names of what is measured then


class _Virtual(NamedTuple):
    """Features that were drawn: x [n, D], y [n]."""

    x: Tensor
    y: Tensor


def require_calibration(cell: Cell, state: State) -> None:
    """Raise UsageError where a run asks for a calibration that its models cannot have."""
    if cell.settings.calibrate:
        _find_head(cell, _serve_one(cell, state))


def calibrate(cell: Cell, state: State, round: int, score: Score) -> dict[str, Any]:
    """Return how good the model is whose last layer is calibrated, and the bytes of that.

    calibrated_test_accuracy and whatever else is measured of what is served.
    """
    served = _serve_one(cell, state)
    head = _find_head(cell, served)
    params, buffers = tree.index(served.models, 0), tree.index(served.buffers, 0)
    features = _compute_features(cell, params, buffers)
    drawn, n_sent = _draw_virtual(cell, features)
    tuned = params | _train_head(cell, head, params, drawn, round)
    models = tree.map(lambda leaf: leaf.unsqueeze(0), tuned)
    found = evaluate(cell.task, served._replace(models=models), cell.data, score, cell.metrics)
    moved = _count_bytes(cell, state, params, n_sent)
    return {f"{CALIBRATED}{name}": value for name, value in (found | moved).items()}


def _serve_one(cell: Cell, state: State) -> Served:
    """Return what all parties are served; UsageError where that is not one model."""
    served = cell.algorithm.serve(state, cell.algorithm.hyper)
    if len(served.which) > 1:
        raise UsageError(
            f"calibrate is of one model for all, and {cell.algorithm.name} serves each party its "
            "own; leave calibrate out"
        )
    return served


def _find_head(cell: Cell, served: Served) -> LinearHead:
    """Return the last layer; UsageError for one that is not linear in the features."""
    return find_linear_head(
        cell.task,
        params=tree.index(served.models, 0),
        buffers=tree.index(served.buffers, 0),
        shape=cell.data.shape,
        what="calibrate trains the last layer on features",
    )


@torch.no_grad()
def _compute_features(cell: Cell, params: Tree, buffers: Tree) -> Tensor:
    """Return the features [N, D] of all training examples, in the order of the parties."""
    examples = cell.data.train
    places = torch.arange(len(examples.y), device=cell.data.device)
    features = []
    for some in torch.split(places, evaluation_batch_size(cell.data.device)):
        out = cell.task.forward(params, buffers, examples.inputs(some), train=False)
        features.append(out.features.flatten(1))
    return torch.cat(features)


def _draw_virtual(cell: Cell, features: Tensor) -> tuple[_Virtual, int]:
    """Return features of each class that somebody holds, and how many numbers parties send."""
    settings, y = cell.settings, cell.data.train.y
    draw_key = key(settings.seed, "calibration features")
    drawn, labels, n_sent = [], [], 0
    for label in range(cell.data.n_classes):
        of_parties = []
        for mine in _list_parties(cell, y == label):
            of_parties.append(measure_class(features[mine]))
            n_sent += count_numbers(features.shape[1])
        gaussian = merge_gaussians(of_parties)
        if gaussian is not None:
            drawn.append(draw_features(gaussian, settings.calibrate, draw_key, label))
            labels.append(torch.full((settings.calibrate,), label, device=y.device))
    return _Virtual(torch.cat(drawn).to(features.dtype), torch.cat(labels)), n_sent


def _list_parties(cell: Cell, is_of_class: Tensor) -> list[Tensor]:
    """Return the places of the examples of a class, for each party that has some."""
    bounds = cell.data.train.indptr
    places = torch.nonzero(is_of_class).flatten()
    party = torch.searchsorted(torch.tensor(bounds[1:], device=places.device), places, right=True)
    sizes = torch.bincount(party, minlength=len(bounds) - 1).tolist()
    return [mine for mine in torch.split(places, sizes) if len(mine)]


def _train_head(
    cell: Cell, head: LinearHead, params: Tree, drawn: _Virtual, round: int
) -> dict[str, Tensor]:
    """Return the last layer after its epochs on the features, by SGD at the run's last rate."""
    settings = cell.settings
    weights = {name: params[name].detach().clone().requires_grad_() for name in head.names}
    sgd = torch.optim.SGD(
        list(weights.values()),
        lr=settings.lr_at(round),
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
    order_key = key(settings.seed, "calibration order")
    for epoch in range(settings.calibrate_epochs):
        for places in _shuffle(int(fold(order_key, epoch)), drawn, settings.batch_size):
            some = _Virtual(drawn.x[places], drawn.y[places])
            sgd.zero_grad()
            torch.autograd.backward(_find_loss(cell, head.apply(weights, some.x), some))
            sgd.step()
    return {name: weight.detach() for name, weight in weights.items()}


def _shuffle(order_key: int, drawn: _Virtual, batch_size: int) -> Sequence[Tensor]:
    """Return the places of each batch of an epoch."""
    places = order(order_key, 0, len(drawn.y), drawn.y.device)
    return places.tensor_split(ceil_div(len(places), batch_size))


def _find_loss(cell: Cell, logits: Tensor, some: _Virtual) -> Tensor:
    out = Out(logits=logits, features=some.x, taps=[some.x, logits], buffers={})
    batch = Batch(x=some.x, y=some.y, mask=None, epoch=0, step=0)
    return cell.task.loss(out, batch)


def _count_bytes(cell: Cell, state: State, params: Tree, n_sent: int) -> dict[str, int]:
    """Return what moves: the model to each party that holds examples, and what they send."""
    n_holding = int((cell.data.counts.sum(1) > 0).sum())
    width = tree.leaves(params)[0].element_size()
    return {"bytes_down": n_holding * count_model_bytes(state), "bytes_up": n_sent * width}
