"""Model-contrastive learning.

State: parties.params and parties.buffers [P, ...], each party's last model; parties.trained [P],
1 from its first round on, else 0. Carried: buffers, those received.
"""

from dataclasses import replace
from typing import Annotated

import torch
from torch import nn

from .. import tree
from ..directions.loss_terms import Contrast, ContrastDirection, Teacher
from ..heads import add_head
from ..interface import (
    Above,
    Algorithm,
    AtLeast,
    Hyper,
    Info,
    Local,
    State,
    Task,
    UsageError,
    Work,
)
from ..tree import Tree
from .fedavg import NONE, fedavg

__all__ = ["moon"]

FAMILY = "features"

BASE = fedavg()


def moon(
    mu: Annotated[
        float, "Weight of the contrast; 0 is FedAvg, on the model with the head.", AtLeast(0)
    ] = 1.0,
    temperature: Annotated[
        float,
        "What the cosines of the contrast are divided by: the smaller, the sharper.",
        Above(0),
    ] = 0.5,
    projection: Annotated[
        int,
        "Width of the head that is put before the last layer; 0 for none, as in NIID-Bench. Its "
        "two layers make a small model learn later, whatever mu: compare with --mu 0.",
        AtLeast(0),
    ] = 256,
) -> Algorithm:
    """MOON. Li, He, Song, CVPR 2021, Algorithm 1: features are drawn towards those of the global
    model, away from those of the party's last one.

    Adds mu * mean_b -log(e^(s_g/T) / (e^(s_g/T) + e^(s_p/T))) to the loss, s_g and s_p the cosines
    of an example's features z with those under the weights received and under the party's model of
    the last round that it took part in. Both teachers are in eval mode and get no gradient. A
    party's first round has no model of its own to push off, and no term: it is FedAvg's. The head
    is Linear d -> d, ReLU, Linear d -> projection.

    The head is the paper's, at torch's default start: two more layers, through which logits and
    gradients begin several times smaller. A small model may stay at chance for rounds in which one
    without a head learns, at mu = 0 too, so it is not the contrast: more local steps or a larger lr
    help. A batch of one example trains as any other; NIID-Bench skips it.
    """
    plain = replace(
        BASE,
        name="moon",
        hyper={"projection": projection},
        adapt=put_head_in if projection else None,
        features=projection > 0,
    )
    if mu == 0:
        return plain
    return replace(
        plain,
        hyper={"mu": mu, "temperature": temperature, "projection": projection},
        init=init,
        begin=begin,
        direction=ContrastDirection(contrast),
        finish=finish,
        features=True,
    )


def put_head_in(module: nn.Module, hyper: Hyper) -> nn.Module:
    width: int = hyper["projection"]
    return add_head(module, width)


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Give each party a last model, and note that it has none yet.

    Until it has one the common start stands there, whose features are as finite as any.
    """
    if task.features_fault:
        raise UsageError(
            f"MOON compares features, the input of the last layer: {task.features_fault}. Or "
            "choose a model of two stages or more (--model mlp, cnn, ...)"
        )
    start = {"params": tree.index(models, 0), "buffers": tree.index(buffers, 0)}
    trained = tree.leaves(models)[0].new_zeros(len(info.n))
    own = tree.repeat(start, len(info.n)) | {"trained": trained}
    return State(models, buffers, parties=own)


def begin(task: Task, local: Local) -> Local:
    """Carry the buffers received; `local.buffers` move on."""
    return local._replace(carry={"buffers": local.buffers})


def contrast(local: Local) -> Contrast:
    """Draw features to those under the weights received, away from those of the last model."""
    own = local.own
    return Contrast(
        towards=Teacher(local.start, local.carry["buffers"]),
        away=Teacher(own["params"], own["buffers"]),
        weight=local.hyper["mu"] * own["trained"],
        temperature=local.hyper["temperature"],
    )


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload as FedAvg does; the party keeps its model."""
    upload, _ = BASE.finish(task, local, work)
    trained = torch.ones_like(local.own["trained"])
    return upload, {"params": local.params, "buffers": local.buffers, "trained": trained}
