"""A personal model at each party, held near the global one."""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from fltrain import tree
from fltrain.algorithms.fedavg import fedavg
from fltrain.algorithms.solo import init as init_solo
from fltrain.algorithms.solo import serve as serve_own
from fltrain.directions.affine import Affine, Corrected
from fltrain.interface import Algorithm, Info, Local, Plan, State, Task, Work
from fltrain.tree import Tree

__all__ = ["ditto"]

BASE = fedavg()


def ditto(
    lam: Annotated[
        float,
        "Weight of the pull of a personal model to the global one, at least 0; with 0 they are SOLO's.",
    ] = 1.0,
) -> Algorithm:
    """Ditto. Li et al., ICML 2021, Algorithm 1: FedAvg, and beside it at each party a personal model v_i that never leaves.

    Each party of the cohort has two jobs on the same batches: FedAvg's, and v_i <- v_i - lr (grad f_i(v_i) + lam (v_i - w)) with w the global model
    that the round began with; v_i goes on from the last round and begins as the common start. The global model is FedAvg's bit for bit.
    Both jobs have the momentum of the settings; the authors' code has none.
    """
    if not lam >= 0:
        raise ValueError(f"lam is {lam}; it must be at least 0")
    ditto = replace(
        BASE,
        name="ditto",
        hyper={"lam": lam},
        init=init,
        plan=plan,
        begin=begin,
        finish=finish,
        personal=serve_own,
    )
    return replace(ditto, direction=Corrected(terms)) if lam else ditto


def init(task: Task, info: Info, models: Tree, buffers: Tree) -> State:
    return replace(init_solo(task, info, models, buffers), server={"n": info.n.double()})


def plan(state: State, cohort: Tensor, round: int) -> Plan:
    """[2S] jobs: of the global model, weighted by examples, then of the personal ones, which weigh nothing and alone are kept."""
    personal = torch.arange(2 * len(cohort)) >= len(cohort)
    n = state.server["n"].to(cohort.device)[cohort]
    return Plan(
        party=torch.cat([cohort, cohort]),
        model=torch.zeros_like(personal, dtype=torch.int64),
        weight=torch.cat([n, torch.zeros_like(n)]),
        keep=personal,
        each={"personal": personal.float().to(tree.leaves(state.models)[0].device)},
    )


def begin(task: Task, local: Local) -> Local:
    own, received = local.own, local.buffers
    params, buffers = (
        _if_personal(local, own["params"], local.params),
        _if_personal(local, own["buffers"], received),
    )
    return local._replace(params=params, buffers=buffers, carry={"received": received})


def terms(local: Local) -> Affine:
    """lam (v - w) of a personal job, 0 of the other."""
    return Affine(pull=local.hyper["lam"] * local.each["personal"].double())


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """The personal job's weight is 0; it uploads what it received, since 0 times a model that has grown without bound is no number."""
    params, buffers = (
        _if_personal(local, local.start, local.params),
        _if_personal(local, local.carry["received"], local.buffers),
    )
    sent = local._replace(params=params, buffers=buffers)
    return BASE.finish(task, sent, work)[0], {"params": local.params, "buffers": local.buffers}


def _if_personal(local: Local, personal: Tree, other: Tree) -> Tree:
    """The one or the other, without a branch: an executor may run both kinds of job at once."""
    return tree.map(lambda a, b: torch.where(local.each["personal"] > 0, a, b), personal, other)
