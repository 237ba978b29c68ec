"""A personal model at each party, held near the global one.

State: server.n [P] float64, training examples; parties.params and parties.buffers [P, ...], the
personal models v_i. Sent: each.personal [J], 1 for the job of a personal model, else 0. Carried:
received, the buffers received.
"""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from .. import tree
from ..directions.affine import Affine, AffineDirection
from ..interface import Algorithm, AtLeast, Hyper, Info, Local, Plan, State, Task, Work
from ..tree import Tree
from ._traffic import count_models
from ._weights import Weights
from .fedavg import NONE, fedavg
from .solo import init as init_solo
from .solo import serve as serve_own

__all__ = ["ditto"]

FAMILY = "personal"

BASE = fedavg()


def ditto(
    lam: Annotated[
        float,
        "Weight of the pull of a personal model to the global one; with 0 they are SOLO's.",
        AtLeast(0),
    ] = 1.0,
    weights: Weights = "examples",
) -> Algorithm:
    """Ditto. Li et al., ICML 2021, Algorithm 1: FedAvg, and at each party besides a personal model
    v_i that never leaves.

    Each party of the cohort has two jobs on the same batches: FedAvg's, and v_i <- v_i - lr (grad
    f_i(v_i) + lam (v_i - w)) with w the global model that the round began with; v_i goes on from
    the last round and begins as the common start. The global model is FedAvg's bit for bit. Both
    jobs have the momentum of the settings; the authors' code has none. The mean is by examples, so
    that it is FedAvg's; the text weighs all alike (`weights` is "uniform").
    """
    return replace(
        BASE,
        name="ditto",
        hyper={"lam": lam},
        init=init,
        plan=plan if weights == "examples" else plan_uniformly,
        begin=begin,
        direction=direction if lam else BASE.direction,
        finish=finish,
        personal=serve_own,
        traffic=count_models,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    state = init_solo(task, info, models, buffers, hyper)
    return replace(state, server={"n": info.n.double()})


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Plan [2S] jobs: of the global model, weighted by examples, then of the personal ones.

    The personal ones weigh nothing, and they alone are kept.
    """
    is_personal = torch.arange(2 * len(cohort)) >= len(cohort)
    n = state.server["n"].to(cohort.device)[cohort]
    device = tree.leaves(state.models)[0].device
    return Plan(
        party=torch.cat([cohort, cohort]),
        model=torch.zeros_like(is_personal, dtype=torch.int64),
        weight=torch.cat([n, torch.zeros_like(n)]),
        keep=is_personal,
        each={"personal": is_personal.float().to(device)},
    )


def plan_uniformly(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Plan the same, but weigh all global models alike."""
    both = plan(state, cohort, round, hyper)
    weight = torch.arange(2 * len(cohort)) < len(cohort)
    return replace(both, weight=weight.double())


def begin(task: Task, local: Local) -> Local:
    received, own = local.buffers, local.own
    return local._replace(
        params=_choose(local, personal=own["params"], other=local.params),
        buffers=_choose(local, personal=own["buffers"], other=received),
        carry={"received": received},
    )


def terms(local: Local) -> Affine:
    """Return lam (v - w) for a personal job, 0 for the other."""
    return Affine(pull=local.hyper["lam"] * local.each["personal"].double())


direction = AffineDirection(terms)


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the global model and keep the personal one.

    The personal job's weight is 0. It uploads what it received, since 0 times a model that has
    grown without bound is not a number.
    """
    sent = local._replace(
        params=_choose(local, personal=local.start, other=local.params),
        buffers=_choose(local, personal=local.carry["received"], other=local.buffers),
    )
    upload, _ = BASE.finish(task, sent, work)
    return upload, {"params": local.params, "buffers": local.buffers}


def _choose(local: Local, personal: Tree, other: Tree) -> Tree:
    """Return one or the other, without a branch: both kinds of job may run at once."""
    is_personal = local.each["personal"] > 0
    return tree.map(lambda a, b: torch.where(is_personal, a, b), personal, other)
