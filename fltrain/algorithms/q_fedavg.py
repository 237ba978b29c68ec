"""Parties with a high loss weigh more, so that losses come near each other.

State: models and buffers [1, ...]; nothing at the server or the parties. Carried: loss, F_k at the
weights received. Uploaded in place of the model: updates, and h, a number.
"""

from dataclasses import replace
from typing import Annotated

import torch

from .. import tree
from ..flat_tree import map_numbers
from ..interface import Algorithm, AtLeast, Hyper, Local, Plan, State, Task, Work
from ..tree import Tree
from ._weights import PLANS, Weights
from .fedavg import fedavg, weigh

__all__ = ["q_fedavg"]

FAMILY = "fairness"

BASE = fedavg()
_LEAST = 1e-10  # added to losses, as in the authors' code: a loss of 0 has a power below 0 too


def q_fedavg(
    q: Annotated[
        float,
        "How much high losses count, by loss^q: the larger, the fairer; 0 is FedAvg.",
        AtLeast(0),
    ] = 1.0,
    weights: Weights = "examples",
) -> Algorithm:
    """q-FedAvg. Li, Sanjabi, Beirami, Smith, ICLR 2020: FedAvg on sum_k p_k F_k^(q+1)
    / (q+1), whose server takes a step of its own size.

    F_k is the party's loss at the weights w received, over all its examples (in eval mode), and
    Delta_k = (w - y_k) L with L = 1 / lr. The server goes w <- w - sum_k p_k F_k^q Delta_k /
    sum_k p_k h_k with h_k = q F_k^(q-1) ||Delta_k||^2 + L F_k^q. Buffers are averaged.

    Printed are plain sums over parties that were drawn by their sizes p_k (`weights` "uniform" with
    `--cohort weighted`); here all are drawn alike, so that p_k = n_k / n stands in both sums. q 0
    is FedAvg bit for bit. There is no momentum in the text; with it L stays 1 / lr of the run, and
    ||Delta_k|| grows, which makes steps shorter. lr is that of the round.
    """
    plan = PLANS[weights]
    if q == 0:
        return replace(BASE, name="q-fedavg", hyper={"q": q}, plan=plan)
    return replace(
        BASE,
        name="q-fedavg",
        hyper={"q": q},
        plan=plan,
        begin=begin,
        finish=finish,
        aggregate=aggregate,
    )


def begin(task: Task, local: Local) -> Local:
    """Carry the loss at the weights received."""
    return local._replace(carry={"loss": task.full_loss(local)})


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the update times F^q, and h."""
    q = local.hyper["q"]
    loss = local.carry["loss"] + _LEAST
    lipschitz = 1 / work.lr
    updates = tree.map(
        lambda w, y: lipschitz * (w.double() - y.double()), local.start, local.params
    )
    squares = torch.stack([leaf.square().sum() for leaf in tree.leaves(updates)]).sum()
    scale = loss**q
    h = q * loss ** (q - 1) * squares + lipschitz * scale
    upload = {
        "updates": map_numbers(lambda delta: work.share * scale * delta, updates),
        "buffers": weigh(local.buffers, work),
        "h": work.share * h,
    }
    return upload, {}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Step along the sum of the updates, over the sum of h."""
    h = total["h"][0]
    models = tree.map(lambda w, d: w.double() - d / h, state.models, total["updates"])
    return BASE.aggregate(state, plan, total | {"models": models}, hyper)
