"""A model of each party's own, mixed with the global one.

State: models and buffers [1, ...], the global model; parties.params [P, ...], the parties' own
models; parties.buffers [P, ...], statistics of the mixtures; parties.alpha [P], the share of the
own model in a party's mixture. A job trains both: the party's own model under the names of the
global one behind `personal.`. Carried: alpha, and the buffers of the mixture.
"""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from .. import tree
from ..interface import (
    Algorithm,
    AtLeast,
    AtMost,
    Batch,
    Hyper,
    Info,
    Local,
    Served,
    State,
    Step,
    Task,
    Work,
)
from ..tree import Tree
from ._weights import PLANS, Weights
from .fedavg import NONE, fedavg

__all__ = ["apfl"]

FAMILY = "personal"

BASE = fedavg()
PERSONAL = "personal."


def apfl(
    alpha: Annotated[
        float,
        "Share of a party's own model in its mixture: with 1 they are SOLO's, 0 is FedAvg.",
        AtLeast(0),
        AtMost(1),
    ] = 0.5,
    alpha_lr: Annotated[
        float,
        "Step by which a party moves its alpha, once a round; with 0 it stays.",
        AtLeast(0),
    ] = 0.0,
    weights: Weights = "examples",
) -> Algorithm:
    """APFL. Deng, Kamani, Mahdavi 2020: FedAvg, and at each party a model v that learns in a
    mixture with it.

    On each batch w takes FedAvg's step, and v one along the gradient by v of f(alpha v + (1 -
    alpha) w), which is alpha times that at the mixture; both are taken where the batch found w and
    v, as printed (the authors' code moves w first, and mixes what two models answer in place of
    their weights). `personal_*` metrics are of alpha v + (1 - alpha) w, w the global model.

    With `alpha_lr`, the first batch of a round moves alpha by -alpha_lr <v - w, grad f(mixture)>,
    kept between 0 and 1. It stays unless asked for, as in the authors' code, whose step has the
    learning rate of the weights and a term that draws alpha to 0. alpha begins as `alpha` at all.

    All steps have the run's momentum and weight decay; with `clip_norm` gradients of both models
    are clipped together. Codes weigh parties alike (`weights` "uniform").

    Says of its state (`--internals`): `alpha` of each party.
    """
    is_mixed = alpha > 0 or alpha_lr > 0
    if not is_mixed:
        return replace(BASE, name="apfl", hyper={"alpha": alpha}, plan=PLANS[weights])
    return replace(
        BASE,
        name="apfl",
        hyper={"alpha": alpha, "alpha_lr": alpha_lr},
        init=init,
        plan=PLANS[weights],
        begin=begin,
        direction=direct_adaptively if alpha_lr else direct,
        finish=finish,
        personal=serve_mixtures,
        describe=describe,
        settings={"keep_optimizer": False},
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Give each party the common start as its own model, too."""
    like = tree.leaves(models)[0]
    own = {
        "params": tree.index(models, 0),
        "buffers": tree.index(buffers, 0),
        "alpha": like.new_full((), hyper["alpha"]),
    }
    return State(models, buffers, parties=tree.repeat(own, len(info.n)))


def begin(task: Task, local: Local) -> Local:
    """Train the party's own model beside the one received."""
    own = {f"{PERSONAL}{name}": v for name, v in local.own["params"].items()}
    carry = {"alpha": local.own["alpha"], "buffers": local.own["buffers"]}
    return local._replace(params=local.params | own, carry=carry)


def direct(task: Task, local: Local, batch: Batch) -> Step:
    """Return the step of both models."""
    step, _ = _direct_both(task, local, batch)
    return step


def direct_adaptively(task: Task, local: Local, batch: Batch) -> Step:
    """Return the step of both models; the first of a round moves alpha too."""
    step, at_mixture = _direct_both(task, local, batch)
    w, v = _part(local)
    rises = tree.map(lambda v, w, g: ((v - w) * g).sum(), v, w, at_mixture)
    slope = torch.stack(tree.leaves(rises)).sum()
    # a product where a branch would do: the number of a step may be on the device
    rate = local.hyper["alpha_lr"] * (batch.step == 0)
    alpha = (local.carry["alpha"] - rate * slope).clamp(0, 1)
    return step._replace(carry=step.carry | {"alpha": alpha})


def _direct_both(task: Task, local: Local, batch: Batch) -> tuple[Step, Tree]:
    """Return the step of both models, and the gradient at their mixture."""
    w, v = _part(local)
    alpha = local.carry["alpha"]
    step = task.grad(local, batch, params=w)
    there = local._replace(buffers=local.carry["buffers"])
    mixed = task.grad(there, batch, params=_mix(alpha, v, w))
    own = {f"{PERSONAL}{name}": alpha * g for name, g in mixed.grad.items()}
    carry = local.carry | {"buffers": mixed.buffers}
    return step._replace(grad=step.grad | own, carry=carry), mixed.grad


def _part(local: Local) -> tuple[Tree, Tree]:
    """Return the global model and the party's own, as they are trained."""
    w = {name: local.params[name] for name in local.start}
    v = {name: local.params[f"{PERSONAL}{name}"] for name in local.start}
    return w, v


def _mix(alpha: Tensor, v: Tree, w: Tree) -> Tree:
    return tree.map(lambda v, w: alpha * v + (1 - alpha) * w, v, w)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the global model, and keep the party's own."""
    w, v = _part(local)
    upload, _ = BASE.finish(task, local._replace(params=w), work)
    return upload, {"params": v, **local.carry}


def serve_mixtures(state: State, hyper: Hyper = NONE) -> Served:
    """Serve each party its mixture with the global model."""
    own = state.parties
    alpha = own["alpha"]

    def mix_all(v: Tensor, w: Tensor) -> Tensor:
        share: Tensor = alpha.view(-1, *[1] * (v.dim() - 1))
        return share * v + (1 - share) * w

    models = tree.map(mix_all, own["params"], state.models)
    return Served(models, own["buffers"], which=torch.arange(len(alpha)))


def describe(state: State, hyper: Hyper) -> Tree:
    """Say each party's alpha."""
    return {"alpha": state.parties["alpha"]}
