"""A personal model at each party, and a global one that is drawn to them."""

from dataclasses import replace
from typing import Annotated

from fltrain import tree
from fltrain.algorithms.fedavg import fedavg
from fltrain.algorithms.solo import init
from fltrain.algorithms.solo import serve as serve_own
from fltrain.interface import Algorithm, Batch, Info, Local, Plan, State, Step, Task, Work
from fltrain.tree import Tree

__all__ = ["pfedme"]

BASE = fedavg()


def pfedme(
    lam: Annotated[
        float,
        "Weight of the pull between a party's personal model and its copy of the global one, above 0; lr x lam must be below 1.",
    ] = 15.0,
    personal_lr: Annotated[float, "Learning rate of the personal model, above 0."] = 0.09,
    inner_steps: Annotated[int, "Steps of the personal model on each batch, at least 0."] = 5,
    server_mix: Annotated[
        float,
        "Step of the server towards the mean, at least 0; 1 is the mean itself, with 0 it stays as it is.",
    ] = 1.0,
) -> Algorithm:
    """pFedMe. Dinh, Tran, Nguyen, NeurIPS 2020, Algorithm 1: the parties' losses are replaced by their Moreau envelopes.

    For each batch `inner_steps` steps theta <- theta - personal_lr (grad f(theta) + lam (theta - w_i)), then
    w_i <- w_i - lr lam (w_i - theta). Server: w <- (1 - server_mix) w + server_mix * mean of the w_i.
    theta starts from w_i at the first batch of a round and is carried from batch to batch, as in the authors' code (the paper
    leaves the start open); after the round it is the party's personal model.

    lr * lam must be below 1, or w_i would step beyond theta. Momentum is 0, since
    the step on w_i has none; weight decay is that of theta. The mean weighs by examples, as in the authors' code; the paper weighs
    equally. Only the cohort trains; in the paper all parties do, and a part of them is averaged. Training loss and batch statistics
    are those of theta as it comes to each batch.
    """
    for name, value in (("lam", lam), ("personal_lr", personal_lr)):
        if not value > 0:
            raise ValueError(f"{name} is {value}; it must be above 0")
    for name, value in (("inner_steps", inner_steps), ("server_mix", server_mix)):
        if not value >= 0:
            raise ValueError(f"{name} is {value}; it must be at least 0")

    def start(task: Task, info: Info, models: Tree, buffers: Tree) -> State:
        if lam * info.lr >= 1:
            raise ValueError(
                f"lr {info.lr} x lam {lam} is {lam * info.lr:.3g}; pFedMe needs less than 1: lower --lr below {1 / lam:.3g}, or --lam"
            )
        return init(task, info, models, buffers)

    base = fedavg(server_mix) if server_mix else replace(BASE, aggregate=aggregate_buffers)

    def direction(task: Task, local: Local, batch: Batch) -> Step:
        hyper, theta = local.hyper, local.carry["theta"]
        step = task.grad(local, batch, params=theta)

        for k in range(inner_steps):
            grad = task.grad(local, batch, params=theta).grad if k else step.grad
            full = tree.map(
                lambda g, t, w: g + hyper["weight_decay"] * t + hyper["lam"] * (t - w),
                grad,
                theta,
                local.params,
            )
            theta = tree.map(lambda t, g: t - hyper["personal_lr"] * g, theta, full)
        drawn = tree.map(lambda w, t: hyper["lam"] * (w - t), local.params, theta)
        return step._replace(grad=drawn, carry={"theta": theta})

    return replace(
        base,
        name="pfedme",
        hyper={"lam": lam, "personal_lr": personal_lr},
        init=start,
        begin=begin,
        direction=direction,
        finish=finish,
        personal=serve_own,
        decay="algorithm",
        settings={"momentum": 0.0},
    )


def begin(task: Task, local: Local) -> Local:
    return local._replace(
        carry={"theta": tree.clone(local.params)}
    )  # a copy: the executor may train params in place


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    upload, _ = BASE.finish(task, local, work)
    return upload, {"params": local.carry["theta"], "buffers": local.buffers}


def aggregate_buffers(state: State, plan: Plan, total: Tree) -> State:
    return replace(BASE.aggregate(state, plan, total), models=state.models)
