"""Parties' updates are cut to a length, and their mean is sent on with noise.

State: models and buffers [1, ...]. server.key [1] int64, of the noise; server.rounds [1] int64,
those that are over; server.cohorts [P + 1] int64, how many rounds had a cohort of that size, P the
parties that hold examples. Uploaded: updates [...], weighted.
"""

from dataclasses import replace
from typing import Annotated, Any

import torch
from torch import Tensor

from .. import tree
from ..draws import key, normal, to_int64
from ..interface import (
    Above,
    Algorithm,
    AtLeast,
    Below,
    Hyper,
    Info,
    Local,
    Plan,
    State,
    Task,
    UsageError,
    Work,
)
from ..privacy import compute_epsilon
from ..tree import Tree
from ._weights import plan_uniformly
from .fedavg import ServerLr, fedavg

__all__ = ["dp_fedavg"]

FAMILY = "privacy"

BASE = fedavg()
_LOW_WORD = 0xFFFFFFFF


def dp_fedavg(
    bound: Annotated[
        float,
        "Longest update of a party, all layers together; a longer one is scaled down.",
        Above(0),
    ] = 1.0,
    noise_multiplier: Annotated[
        float,
        "Standard deviation of the noise in a sum of updates, in bounds; 0 for none.",
        AtLeast(0),
    ] = 1.0,
    delta: Annotated[
        float,
        "Chance that the guarantee fails, with which epsilon is said; 0 for no epsilon.",
        AtLeast(0),
        Below(1),
    ] = 1e-5,
    server_lr: ServerLr = 1.0,
) -> Algorithm:
    """DP-FedAvg. McMahan, Ramage, Talwar, Zhang, ICLR 2018, Algorithm 1: updates are clipped to a
    length, and noise is added to their mean.

    For study and reproduction, not for protection: the run sees every update, its noise follows
    from the seed, and secure aggregation is not simulated. Losses and accuracies that are written
    down are not private either.

    w <- w + server_lr (sum_i clip(y_i - w) + noise_multiplier bound N) / S over the cohort of S,
    with clip(d) = d min(1, bound / length of d) over all layers together, and N standard normal in
    each number, drawn by counter from seed and round. What is protected is a party, with all that
    it holds. Beside each evaluated round stands `internal_epsilon`, with `delta`, by the accountant
    of dp-accounting, which is an extra.

    Not as printed: cohorts have a fixed size, where the text draws each party by itself, and the
    accountant is that of fixed sizes; neighbours differ in one party that is replaced, so epsilon
    is larger than where one is left out. All weigh alike. A model whose batch norm keeps
    statistics is refused, since they would be sent as they are; other buffers stay at the server.

    Examples
    --------
    >>> dp_fedavg(bound=0.5, delta=0.0).settings
    {}
    """
    says_epsilon = delta > 0 and noise_multiplier > 0
    needed: dict[str, Any] = {}
    if says_epsilon:
        # calibration sends means and covariances of features without noise
        needed = {"internals": True, "cohort": "uniform", "calibrate": 0}
    return replace(
        BASE,
        name="dp-fedavg",
        hyper={
            "bound": bound,
            "noise_multiplier": noise_multiplier,
            "delta": delta,
            "server_lr": server_lr,
        },
        init=init,
        plan=plan_uniformly,
        finish=finish,
        aggregate=aggregate,
        describe=describe if says_epsilon else None,
        settings=needed,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper,
) -> State:
    """Refuse statistics of batch norm, and start counting rounds."""
    _refuse_statistics(task)
    device = tree.leaves(models)[0].device
    noise_key = to_int64(key(info.seed, "dp-fedavg noise"))
    n_holding = int((info.n > 0).sum())
    server = {
        "key": torch.tensor([noise_key], device=device),
        "rounds": torch.zeros(1, dtype=torch.int64, device=device),
        "cohorts": torch.zeros(n_holding + 1, dtype=torch.int64, device=device),
    }
    return State(models, buffers, server=server)


def _refuse_statistics(task: Task) -> None:
    """Raise UsageError for a model that learns statistics of its batches."""
    kinds = task.buffer_kinds
    statistics = [name for name in kinds if kinds[name] == "norm" and name not in task.kinds]
    if statistics:
        raise UsageError(
            f"the model keeps statistics of its batches ({statistics[0]}), which would leave a "
            "party without noise; take a model with another norm, such as group norm"
        )


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the clipped update. Nothing else leaves a party."""
    update = tree.map(_subtract, local.params, local.start)
    scale = work.share * _find_scale(update, local.hyper["bound"])
    return {"updates": tree.map(lambda u: scale * u, update)}, {}


def _subtract(y: Tensor, w: Tensor) -> Tensor:
    return y.double() - w.double()


def _find_scale(update: Tree, bound: float | Tensor) -> Tensor:
    """Return min(1, bound / length of the update)."""
    squares = [leaf.square().sum() for leaf in tree.leaves(update)]
    length = torch.stack(squares).sum().sqrt()
    return (bound / length).clamp(max=1)


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Step along the mean of the clipped updates and its noise."""
    size = len(plan.party)
    deviation = hyper["noise_multiplier"] * hyper["bound"] / size
    moves = total["updates"]
    if deviation:
        noise = _draw_noise(state)
        moves = tree.map(lambda mean, n: mean + deviation * n, moves, noise)
    server_lr = hyper["server_lr"]
    models = tree.map(
        lambda w, move: (w.double() + server_lr * move).to(w.dtype), state.models, moves
    )
    cohorts = state.server["cohorts"].clone()
    cohorts[size] += 1
    server = {"rounds": state.server["rounds"] + 1, "cohorts": cohorts}
    return replace(state, models=models, server=state.server | server)


def _draw_noise(state: State) -> Tree:
    """Return a standard normal for each number of the model, float64, drawn by key and round."""
    sizes = [leaf.numel() for leaf in tree.leaves(state.models)]
    noise_key = state.server["key"]
    words = torch.stack([noise_key & _LOW_WORD, (noise_key >> 32) & _LOW_WORD], dim=1)
    drawn = normal(words, rows=state.server["rounds"], epoch=0, width=sum(sizes))
    parts = torch.split(drawn[0], sizes)
    noise = [
        part.reshape(w.shape) for part, w in zip(parts, tree.leaves(state.models), strict=True)
    ]
    paths = tree.flatten(state.models)
    return tree.unflatten(dict(zip(paths, noise, strict=True)))


def describe(state: State, hyper: Hyper) -> dict[str, Tensor]:
    """Return epsilon after the rounds so far."""
    rounds = state.server["cohorts"].tolist()
    epsilon = compute_epsilon(
        {size: n for size, n in enumerate(rounds) if n},
        n_parties=len(rounds) - 1,
        noise_multiplier=hyper["noise_multiplier"],
        delta=hyper["delta"],
    )
    return {"epsilon": torch.tensor(epsilon, dtype=torch.float64)}
