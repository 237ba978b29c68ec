"""A personal model at each party, and a global one that is drawn to them.

State: parties.params and parties.buffers [P, ...], theta of each party after its last round.
Carried: theta, from batch to batch; `local.params` is w_i.
"""

from dataclasses import replace
from typing import Annotated

from .. import tree
from ..directions.envelope import THETA, Envelope, EnvelopeDirection
from ..interface import (
    Above,
    Algorithm,
    AtLeast,
    Hyper,
    Info,
    Local,
    Plan,
    State,
    Task,
    UsageError,
    Work,
)
from ..tree import Tree
from ._weights import PLANS, Weights
from .fedavg import fedavg, step_towards_mean
from .solo import init as init_solo
from .solo import serve as serve_own

__all__ = ["pfedme"]

FAMILY = "personal"

BASE = fedavg()


def pfedme(
    lam: Annotated[
        float,
        "Weight of the pull between a party's personal model and its copy of the global one; "
        "lr x lam must be below 1.",
        Above(0),
    ] = 15.0,
    personal_lr: Annotated[float, "Learning rate of the personal model.", Above(0)] = 0.09,
    inner_steps: Annotated[int, "Steps of the personal model on each batch.", AtLeast(0)] = 5,
    server_mix: Annotated[
        float,
        "Step of the server towards the mean; 1 is the mean itself, with 0 it stays as it is.",
        AtLeast(0),
    ] = 1.0,
    weights: Weights = "examples",
) -> Algorithm:
    """pFedMe. Dinh, Tran, Nguyen, NeurIPS 2020, Algorithm 1: the parties' losses are replaced by
    their Moreau envelopes.

    For each batch `inner_steps` steps theta <- theta - personal_lr (grad f(theta) +
    lam (theta - w_i)), then w_i <- w_i - lr lam (w_i - theta). Server: w <- (1 - server_mix) w +
    server_mix * mean of the w_i. theta starts from w_i at the first batch of a round and is carried
    from batch to batch, as in the authors' code (the paper leaves the start open); after the round
    it is the party's personal model.

    lr * lam must be below 1, or w_i would step beyond theta. Momentum is 0, since the step on w_i
    has none; weight decay is that of theta. The mean weighs by examples, as in the authors' code,
    unless `weights` is "uniform", as in the paper. Only the cohort trains; in the paper all parties
    do, and a part of them is averaged. Training loss and batch statistics are those of theta as it
    comes to each batch.
    """
    return replace(
        BASE,
        name="pfedme",
        hyper={
            "lam": lam,
            "personal_lr": personal_lr,
            "inner_steps": inner_steps,
            "server_mix": server_mix,
        },
        init=init,
        plan=PLANS[weights],
        begin=begin,
        direction=EnvelopeDirection(envelope),
        finish=finish,
        aggregate=aggregate,
        personal=serve_own,
        decay="algorithm",
        optimizer="sgd",
        settings={"momentum": 0.0},
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper,
) -> State:
    lr, lam = info.lr, hyper["lam"]
    if lam * lr >= 1:
        raise UsageError(
            f"lr {lr} x lam {lam} is {lam * lr:.3g}; pFedMe needs less than 1: "
            f"lower --lr below {1 / lam:.3g}, or --lam"
        )
    return init_solo(task, info, models, buffers, hyper)


def begin(task: Task, local: Local) -> Local:
    """Start theta from a copy of w_i: the executor may train the parameters in place."""
    return local._replace(carry={THETA: tree.clone(local.params)})


def envelope(local: Local) -> Envelope:
    hyper = local.hyper
    return Envelope(
        pull=hyper["lam"],
        lr=hyper["personal_lr"],
        steps=hyper["inner_steps"],
        decay=hyper["weight_decay"],
    )


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload w_i; the party keeps theta."""
    upload, _ = BASE.finish(task, local, work)
    return upload, {"params": local.carry[THETA], "buffers": local.buffers}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Mix the mean into the model. Buffers are averaged."""
    server_mix = hyper["server_mix"]
    if server_mix == 0:
        return replace(BASE.aggregate(state, plan, total, hyper), models=state.models)
    return step_towards_mean(state, plan, total, {"server_lr": server_mix})
