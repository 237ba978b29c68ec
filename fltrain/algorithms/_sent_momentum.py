"""A direction that the server sends to all parties: what the last round's steps amounted to.

State: server.delta [...], without the axis M: the mean gradient that the cohort of the last round
followed; 0 at the start. Broadcast: shared.delta [...]. Uploaded besides the model: moved, a
number. Carried: delta, times 1 - alpha.
"""

from dataclasses import replace
from typing import Annotated

from torch import Tensor

from .. import tree
from ..directions.affine import Affine
from ..interface import (
    Above,
    Algorithm,
    AtMost,
    Hyper,
    Info,
    Local,
    Plan,
    State,
    Task,
    Work,
)
from ..tree import Tree
from ._weights import Weights, weigh_alike
from .fedavg import NONE, fedavg, step_towards_mean
from .fednova import effective_steps, make_double

BASE = fedavg()

Alpha = Annotated[
    float,
    "Weight of the party's own gradient; the rest is that of the direction which the server sends. "
    "1 sends none.",
    Above(0),
    AtMost(1),
]


def send_momentum(base: Algorithm, weights: Weights) -> Algorithm:
    """Return an algorithm whose server sends a direction; what is done with it is the caller's."""
    return replace(
        base,
        init=init,
        plan=plan_by_examples if weights == "examples" else plan_uniformly,
        begin=begin,
        finish=finish,
        aggregate=aggregate,
        # the direction is on the gradient's scale: `moved` counts on SGD's steps
        optimizer="sgd",
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Start without a direction: it is 0."""
    return State(models, buffers, server={"delta": tree.zeros_like(tree.index(models, 0))})


def plan_by_examples(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Broadcast the direction."""
    plan = BASE.plan(state, cohort, round, hyper)
    return replace(plan, shared={"delta": state.server["delta"]})


def plan_uniformly(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    return weigh_alike(plan_by_examples(state, cohort, round, hyper))


def begin(task: Task, local: Local) -> Local:
    """Carry (1 - alpha) Delta."""
    rest = 1 - local.hyper["alpha"]
    return local._replace(carry={"delta": tree.map(lambda d: rest * d, local.shared["delta"])})


def terms(local: Local) -> Affine:
    """Return alpha g + (1 - alpha) Delta."""
    return Affine(weight=local.hyper["alpha"], add=local.carry["delta"])


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload as FedAvg does, and by how much a gradient of 1 would have moved the weights."""
    upload, own = BASE.finish(task, local, work)
    moved = work.share * work.lr * effective_steps(work.steps, work.momentum)
    device = tree.leaves(local.params)[0].device
    return upload | {"moved": make_double(moved).to(device)}, own


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Step towards the mean model; the way to it, over what a gradient of 1 moves, is Delta."""

    def measure_gradient(w: Tensor, mean: Tensor) -> Tensor:
        gradient: Tensor = (w.double() - mean) / total["moved"]
        return gradient[0].to(w.dtype)  # [0]: there is one model

    delta = tree.map(measure_gradient, state.models, total["models"])
    stepped = step_towards_mean(state, plan, total, hyper)
    return replace(stepped, server={"delta": delta})
