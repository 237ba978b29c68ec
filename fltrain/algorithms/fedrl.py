"""Review learning."""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ..interface import Algorithm, Batch, Info, Local, Out, Plan, State, Step, Task
from ..tree import Tree
from .fedavg import fedavg

__all__ = ["fedrl"]


def fedrl(
    mu: Annotated[float, "Weight of the review, at least 0; 0 is FedAvg."] = 0.001,
    schedule: Annotated[
        Literal["batch", "epoch", "round"],
        "The review moves on to the model's next stage after each batch, epoch or round.",
    ] = "batch",
    norm: Annotated[
        Literal["mean_l2", "l2", "mean_sq"],
        "The distance of a batch: mean of its examples' 2-norms, 2-norm of the whole, or mean of the squared norms.",
    ] = "mean_l2",
) -> Algorithm:
    """FedRL, review learning. Wang, Wang, Pei, ICMLC 2024, Algorithm 1: a party reviews the global model's outputs at one stage after the other.

    Adds (mu/2) R to the loss, R the distance between the outputs of stage m under the local weights and under those received (eval mode, no
    gradient, stopped at m). m = 0 is the first stage, M - 1 the logits; it moves on by one, modulo M, after each batch (from 0 in every local
    training: Algorithm 1), epoch, or round (as the introduction has it).

    norm is an option since the paper does not say how a batch is reduced. ValueError: mu < 0, or a model without review points.
    """
    if mu < 0:
        raise UsageError(f"mu is {mu}; it must not be negative")
    if mu == 0:
        return replace(fedavg(), name="fedrl")

    def direction(task: Task, local: Local, batch: Batch) -> Step:
        """`shared` is the same for all jobs and lies on the host, so its round is a plain number to all of them."""
        turn = (
            batch.step
            if schedule == "batch"
            else batch.epoch
            if schedule == "epoch"
            else int(local.shared["round"]) - 1
        )
        point = turn % task.n_stages

        def extra(params: Tree, out: Out) -> Tensor:
            with torch.no_grad():
                given = task.forward(
                    local.start,
                    local.carry["buffers"],
                    batch.x,
                    train=False,
                    key=local.key,
                    upto=point,
                ).taps[point]
            return local.hyper["mu"] / 2 * review(out.taps[point] - given, batch.mask, norm)

        return task.grad(local, batch, extra)

    return replace(
        fedavg(),
        name="fedrl",
        init=init,
        plan=plan,
        begin=begin,
        direction=direction,
        hyper={"mu": mu},
        lockstep="epoch" if schedule == "epoch" else "step",
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
    if task.n_stages == 0:
        raise UsageError(
            "a model without review points: FedRL reviews the stages of a model, this one declares none; "
            "build it with fltrain.models.Staged, or choose a --model of fltrain"
        )
    return State(models, buffers)


def plan(state: State, cohort: Tensor, round: int, hyper: Tree) -> Plan:
    return Plan(party=cohort, model=torch.zeros_like(cohort), shared={"round": torch.tensor(round)})


def begin(task: Task, local: Local) -> Local:
    return local._replace(carry={"buffers": local.buffers})  # those received; local.buffers move on


def review(gap: Tensor, mask: Tensor | None, norm: str) -> Tensor:
    """R of the differences `gap` [B, ...]. At gap 0, where every local training begins, vector_norm has gradient 0; a root of a sum has none."""
    gap = gap.flatten(1)
    if mask is not None:
        gap = torch.where(mask.unsqueeze(1), gap, 0)
    if norm == "l2":
        return torch.linalg.vector_norm(gap)
    each = torch.linalg.vector_norm(gap, dim=1) if norm == "mean_l2" else gap.square().sum(1)
    return each.mean() if mask is None else each.sum() / mask.sum().clamp(min=1)
