"""The weights of the parties are moved to those with a high loss.

State: models and buffers [1, ...]; server.weights [P] float64, lambda, from 0 and with the sum 1;
server.holding [1] int64, how many parties hold examples; server.mean [1, ...] float64, the mean of
the models after each round, and server.rounds [1], how many those are; parties.loss [P] float64, a
party's loss at the weights that it received last. Carried: loss.
"""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from .. import tree
from ..interface import (
    Algorithm,
    AtLeast,
    Hyper,
    Info,
    Local,
    Plan,
    Served,
    State,
    Task,
    Work,
)
from ..tree import Tree
from .fedavg import NONE, fedavg

__all__ = ["afl"]

FAMILY = "fairness"

BASE = fedavg()
_LEAST = 1e-300  # of a weight 0: it counts only where no party of the cohort has another


def afl(
    weights_lr: Annotated[
        float, "Step of the parties' weights along their losses; with 0 they stay.", AtLeast(0)
    ] = 0.1,
    first_weights: Annotated[
        Literal["uniform", "examples"], "The weights begin alike, or as shares of all examples."
    ] = "uniform",
    served: Annotated[
        Literal["average", "last"],
        "What is evaluated: the mean of the models after all rounds, or the last one.",
    ] = "average",
) -> Algorithm:
    """AFL. Mohri, Sivek, Suresh, ICML 2019: FedAvg for the worst mixture of the parties, max over
    lambda of sum_k lambda_k L_k(w), lambda_k from 0 and with the sum 1.

    Local models weigh by lambda, and after the round lambda <- Proj(lambda + weights_lr L), L_k the
    loss of party k at the weights that the round began with, over all its examples (in eval mode),
    and Proj the nearest such lambda. With one step of all examples a round w moves as printed, by
    -lr sum_k lambda_k grad L_k; more steps are FedAvg's. lambda begins alike for all (others'
    code), or as n_k / n, from which FedAvg never moves (`first_weights` "examples").

    Of a cohort of S among P parties the losses count P / S times, so that lambda moves as with all
    on the average, and lambda is divided by its sum over the cohort; in others' code all
    are there. Parties without examples are in neither number. That holds where all parties are
    drawn alike, as the text draws those whose loss it takes, P times each; other rules of cohorts
    are refused, since lambda would rise with how often a party is drawn. `served` "average" is what
    that code evaluates; it has the statistics of batch norm of the last.

    Says of its state (`--internals`): `weight` of each party.
    """
    return replace(
        BASE,
        name="afl",
        hyper={"weights_lr": weights_lr},
        init=INITS[first_weights],
        plan=plan,
        begin=begin,
        finish=finish,
        aggregate=aggregate,
        serve=serve_mean if served == "average" else BASE.serve,
        traffic=traffic,
        describe=describe,
        settings={"cohort": "uniform"},
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Give all parties with examples one weight."""
    return _start(models, buffers, (info.n > 0).double())


def init_by_examples(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Give parties weights by their examples."""
    return _start(models, buffers, info.n.double())


def _start(models: Tree, buffers: Tree, weights: Tensor) -> State:
    device = tree.leaves(models)[0].device
    loss = torch.zeros_like(weights, device=device)
    server = {
        "weights": weights / weights.sum(),
        "holding": (weights > 0).sum().reshape(1),
        "mean": tree.map(Tensor.double, models),
        "rounds": torch.zeros(1, dtype=torch.int64),
    }
    return State(models, buffers, server, parties={"loss": loss})


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Let the cohort train, each with its weight."""
    weights = state.server["weights"].to(cohort.device)[cohort]
    return replace(BASE.plan(state, cohort, round, hyper), weight=weights.clamp(min=_LEAST))


def begin(task: Task, local: Local) -> Local:
    """Carry the loss at the weights received."""
    return local._replace(carry={"loss": task.full_loss(local)})


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload as FedAvg does; the server reads each party's loss in its row."""
    upload, _ = BASE.finish(task, local, work)
    return upload, {"loss": local.carry["loss"]}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Take the weighted mean, note it in the mean over the rounds, and move the weights."""
    averaged = BASE.aggregate(state, plan, total, hyper)
    server = state.server
    rounds = server["rounds"] + 1
    share = 1 / int(rounds)
    mean = tree.map(lambda m, w: m + share * (w.double() - m), server["mean"], averaged.models)
    weights = _move_weights(state, plan, hyper["weights_lr"])
    moved = {"weights": weights, "mean": mean, "rounds": rounds}
    return replace(averaged, server=server | moved)


def _move_weights(state: State, plan: Plan, weights_lr: float) -> Tensor:
    """Return the weights [P] after a step along the losses of the cohort."""
    weights: Tensor = state.server["weights"]
    if weights_lr == 0:
        return weights
    losses = state.parties["loss"].to(weights.device)
    party = plan.party  # without those that hold nothing: they are in no round
    moved = weights.clone()
    n_holding = int(state.server["holding"])
    moved[party] += weights_lr * n_holding / len(party) * losses[party]
    return project(moved)


def project(values: Tensor) -> Tensor:
    """Return the nearest numbers [P] from 0 on whose sum is 1.

    All are lowered by one number, and those that fall below 0 are 0; the number is such that the
    largest k, as many as stay above 0, have the sum 1.
    """
    largest = values.sort(descending=True).values
    counts = torch.arange(1, len(values) + 1, dtype=values.dtype, device=values.device)
    lowered_by = (largest.cumsum(0) - 1) / counts
    n_above = int((largest > lowered_by).sum())
    return (values - lowered_by[n_above - 1]).clamp(min=0)


def serve_mean(state: State, hyper: Hyper = NONE) -> Served:
    """Serve the mean of the models after all rounds."""
    mean = tree.map(lambda m, w: m.to(w.dtype), state.server["mean"], state.models)
    return BASE.serve(replace(state, models=mean), hyper)


def traffic(state: State, plan: Plan, task: Task, hyper: Hyper = NONE) -> tuple[Tensor, Tensor]:
    """Count a model each way, and 4 bytes up for the loss."""
    n_bytes = tree.nbytes(state.models) + tree.nbytes(state.buffers)
    down = torch.full_like(plan.party, n_bytes)
    return down, down + 4


def describe(state: State, hyper: Hyper) -> Tree:
    """Say the weight of each party."""
    return {"weight": state.server["weights"]}


INITS = {"uniform": init, "examples": init_by_examples}
