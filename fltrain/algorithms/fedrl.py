"""Review learning.

State: nothing besides the models. Broadcast: shared.round, a number on the host. Carried: buffers,
those received.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from ..directions.loss_terms import DistanceDirection, DistanceNorm, StageDistance, Teacher
from ..interface import (
    Algorithm,
    AtLeast,
    Hyper,
    Info,
    Local,
    Plan,
    State,
    Task,
    UsageError,
)
from ..tree import Tree
from .fedavg import NONE, fedavg

__all__ = ["fedrl"]

FAMILY = "distillation"

BASE = fedavg()

ReviewSchedule = Literal["batch", "epoch", "round"]


def fedrl(
    mu: Annotated[float, "Weight of the review; 0 is FedAvg.", AtLeast(0)] = 0.001,
    schedule: Annotated[
        ReviewSchedule,
        "The review moves on to the model's next stage after each batch, epoch or round.",
    ] = "batch",
    norm: Annotated[
        DistanceNorm,
        "The distance of a batch: mean of its examples' 2-norms, 2-norm of the whole, or mean of "
        "the squared norms.",
    ] = "mean_l2",
) -> Algorithm:
    """FedRL, review learning. Wang, Wang, Pei, ICMLC 2024, Algorithm 1: a party reviews the global
    model's outputs at one stage after the other.

    Adds (mu/2) R to the loss, R the distance between the outputs of stage m under the local weights
    and under those received (eval mode, no gradient, stopped at m). m = 0 is the first stage, M - 1
    the logits; it moves on by one, modulo M, after each batch (from 0 in every local training:
    Algorithm 1), epoch, or round (as the introduction has it). `norm` is an option since the paper
    does not say how a batch is reduced.
    """
    if mu == 0:
        return replace(BASE, name="fedrl")
    return replace(
        BASE,
        name="fedrl",
        hyper={"mu": mu},
        init=init,
        plan=plan,
        begin=begin,
        direction=DistanceDirection(Review(schedule, norm)),
        lockstep="epoch" if schedule == "epoch" else "step",
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Refuse a model without stages: it has nothing to review."""
    if task.n_stages == 0:
        raise UsageError(
            "a model without review points: FedRL reviews the stages of a model, this one declares "
            "none. An nn.Sequential has its layers with parameters as stages; build the model as "
            "one, or with fltrain.models.Staged, or choose a --model of fltrain"
        )
    return State(models, buffers)


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Broadcast the round, on the host, so that it is a plain number to all jobs."""
    return replace(BASE.plan(state, cohort, round, hyper), shared={"round": torch.tensor(round)})


def begin(task: Task, local: Local) -> Local:
    """Carry the buffers received; `local.buffers` move on."""
    return local._replace(carry={"buffers": local.buffers})


@dataclass(frozen=True)
class Review:
    """The distance from the outputs under the weights received, by its schedule and its norm."""

    schedule: ReviewSchedule
    norm: DistanceNorm

    def __call__(self, local: Local) -> StageDistance:
        received = Teacher(local.start, local.carry["buffers"])
        weight = local.hyper["mu"] / 2
        if self.schedule == "round":
            stage = int(local.shared["round"]) - 1
            return StageDistance(received, weight, self.norm, first=stage, moves="never")
        return StageDistance(received, weight, self.norm, moves=self.schedule)
