"""Model-contrastive learning."""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from niidpart.errors import UsageError

from .. import tree
from ..interface import Algorithm, Batch, Info, Local, Out, State, Step, Task, Work
from ..tree import Tree
from .fedavg import fedavg

__all__ = ["moon"]

BASE = fedavg()


def moon(
    mu: Annotated[
        float, "Weight of the contrast, at least 0; 0 is FedAvg, on the model with the head."
    ] = 1.0,
    temperature: Annotated[
        float, "What the cosines of the contrast are divided by: the smaller, the sharper; above 0."
    ] = 0.5,
    projection: Annotated[
        int,
        "Width of the head that is put before the last layer, at least 0; 0 for none, as in NIID-Bench.",
    ] = 256,
) -> Algorithm:
    """MOON. Li, He, Song, CVPR 2021, Algorithm 1: features are drawn towards those of the global model, away from those of the party's last one.

    Adds mu * mean_b -log(e^(s_g/T) / (e^(s_g/T) + e^(s_p/T))) to the loss, s_g and s_p the cosines of an example's features z with those
    under the weights received and under the party's model of the last round that it took part in. Both teachers are in eval mode and get no
    gradient. A party's first round has no model of its own to push off, and no term: it is FedAvg's.

    The head is Linear d -> d, ReLU, Linear d -> projection. ValueError: mu < 0, temperature <= 0, projection < 0, or a model that declares no
    features.
    """
    if mu < 0 or not temperature > 0 or projection < 0:
        raise UsageError(
            f"mu is {mu}, temperature {temperature}, projection {projection}; mu and projection must not be negative, temperature above 0"
        )

    def headed(module: nn.Module, hyper: Tree) -> nn.Module:
        if not hasattr(module, "with_head"):
            raise UsageError(
                f"MOON puts a projection head into a model of stages (fltrain.models.Staged), {type(module).__name__} is none; "
                "choose a --model of fltrain, or --projection 0 for no head"
            )
        return module.with_head(projection)

    plain = replace(BASE, name="moon", adapt=headed if projection else None)
    if mu == 0:
        return plain
    return replace(
        plain,
        init=init,
        begin=begin,
        direction=direction,
        finish=finish,
        hyper={"mu": mu, "temperature": temperature},
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
    """Each party's last model, and whether it has one; until then the common start stands there, whose features are as finite as any."""
    if task.n_stages < 2:
        raise UsageError(
            f"MOON compares features, the output of the stage before the last; this model declares {task.n_stages} stages. "
            "Choose a model of two stages or more (--model mlp, cnn, ...)"
        )
    own = tree.repeat(
        {"params": tree.index(models, 0), "buffers": tree.index(buffers, 0)}, len(info.n)
    )
    return State(
        models, buffers, parties=own | {"trained": tree.leaves(models)[0].new_zeros(len(info.n))}
    )


def begin(task: Task, local: Local) -> Local:
    return local._replace(carry={"buffers": local.buffers})  # those received; local.buffers move on


def direction(task: Task, local: Local, batch: Batch) -> Step:
    def extra(params: Tree, out: Out) -> Tensor:
        towards = features(task, local, local.start, local.carry["buffers"], batch)
        away = features(task, local, local.own["params"], local.own["buffers"], batch)
        terms = contrast(out.features.flatten(1), towards, away, local.hyper["temperature"])
        mean = (
            terms.mean()
            if batch.mask is None
            else (terms * batch.mask).sum() / batch.mask.sum().clamp(min=1)
        )
        return (
            local.hyper["mu"] * local.own["trained"] * mean
        )  # a product, since jobs may be stacked; the term is finite

    return task.grad(local, batch, extra)


@torch.no_grad()
def features(task: Task, local: Local, params: Tree, buffers: Tree, batch: Batch) -> Tensor:
    """[B, D]: what a teacher makes of the batch."""
    return task.forward(params, buffers, batch.x, train=False, key=local.key).features.flatten(1)


def contrast(z: Tensor, towards: Tensor, away: Tensor, temperature: float | Tensor) -> Tensor:
    """[B]: the term of each example, between log(1 + e^(-2/T)) and log(1 + e^(2/T)). Norms below 1e-8 count as that."""
    s_g, s_p = F.cosine_similarity(z, towards, dim=1), F.cosine_similarity(z, away, dim=1)
    return -F.logsigmoid((s_g - s_p) / temperature)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """FedAvg's upload; the party keeps its model."""
    upload, _ = BASE.finish(task, local, work)
    return upload, {
        "params": local.params,
        "buffers": local.buffers,
        "trained": torch.ones_like(local.own["trained"]),
    }
