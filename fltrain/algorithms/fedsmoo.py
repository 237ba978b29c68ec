"""Parties stay near the model, and look uphill where all look: both are put right by a dual.

State: models [1, ...]; server.s [...], the perturbation that all agree on; parties.h and
parties.mu [P, ...], the duals of weights and of perturbations. Broadcast: shared.s. Carried: dual,
the mu of the party, which moves with each batch.
"""

from dataclasses import replace
from typing import Annotated

from torch import Tensor

from .. import tree
from ..directions.ascent import DUAL, Ascent, AscentDirection, measure_length
from ..interface import Above, Algorithm, Hyper, Info, Local, Plan, State, Task, Work
from ..tree import Tree
from ._duals import add_mean_dual, move_dual, start_duals
from ._weights import weigh_alike
from .fedavg import NONE, fedavg, weigh
from .fedspeed import Lam, terms

__all__ = ["fedsmoo"]

FAMILY = "flatness"

BASE = fedavg()


def fedsmoo(
    rho: Annotated[
        float, "How far uphill from the weights the gradient is taken; feddyn is without.", Above(0)
    ] = 0.1,
    lam: Lam = 10.0,
) -> Algorithm:
    """FedSMOO. Sun et al., ICML 2023: steps along grad f(y + e) + (y - w + h_i) / lam, as
    FedSpeed's, with an e that the parties agree on.

    e = rho d / ||d|| with d = g - mu_i - s, then mu_i <- mu_i + e - s, at each batch. After the
    round h_i <- h_i + y_i - w, w is the mean of the y_i and the mean of all h_i, as FedDyn's, and
    s is rho times the mean of the cohort's mu_i over its length. h_i, mu_i and s start at 0. lam is
    the paper's beta; its dual of the weights is -h_i / lam.

    s is that of the authors' code, which leaves out the last e of each party beside its mu_i, as
    small. Parties weigh alike, as the sum of h_i demands. Besides the model mu_i goes up and s
    down. Numbers are those of the code, whose lamb is 1 / lam.
    """
    return replace(
        BASE,
        name="fedsmoo",
        hyper={"rho": rho, "lam": lam},
        init=init,
        plan=plan,
        begin=begin,
        direction=direction,
        finish=finish,
        aggregate=aggregate,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Start all duals, and what all agree on, at 0."""
    zero = tree.zeros_like(tree.index(models, 0))
    own = start_duals(models, info) | {"mu": tree.repeat(zero, len(info.n))}
    return State(models, buffers, server={"s": zero}, parties=own)


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Broadcast s; all parties weigh alike."""
    alike = weigh_alike(BASE.plan(state, cohort, round, hyper))
    return replace(alike, shared={"s": state.server["s"]})


def begin(task: Task, local: Local) -> Local:
    """Carry mu."""
    return local._replace(carry={DUAL: local.own["mu"]})


def ascent(local: Local) -> Ascent:
    """Return an ascent of length rho, drawn to what all agree on."""
    return Ascent(rho=local.hyper["rho"], common=local.shared["s"])


direction = AscentDirection(ascent, terms)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the model and mu; keep h and mu."""
    upload, _ = BASE.finish(task, local, work)
    mu = local.carry[DUAL]
    return upload | {"mu": weigh(mu, work)}, {"h": move_dual(local), "mu": mu}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Add the mean of all h_i to that of the y_i; bring the mean mu to length rho."""
    mean = BASE.aggregate(state, plan, total, hyper)
    models = add_mean_dual(state.models, total["models"], state.parties["h"])
    mu = tree.index(total["mu"], 0)  # sums are by model, and there is one
    per_length = hyper["rho"] / measure_length(mu)
    s = tree.map(lambda old, new: (per_length * new).to(old.dtype), state.server["s"], mu)
    return replace(mean, models=models, server={"s": s})
