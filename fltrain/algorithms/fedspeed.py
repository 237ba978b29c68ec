"""Parties stay near the model, are put right by what staying near has cost, and look uphill.

State: models [1, ...]; parties.h [P, ...] (`_duals.py`).
"""

from dataclasses import replace
from typing import Annotated, Literal

import torch

from .. import tree
from ..directions.affine import Affine, AffineDirection
from ..directions.ascent import Ascent, AscentDirection
from ..interface import (
    Above,
    Algorithm,
    AtLeast,
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
from ._duals import add_mean_dual, move_dual, start_duals
from ._weights import plan_uniformly
from .fedavg import NONE, fedavg
from .fedsam import Rho

__all__ = ["fedspeed"]

FAMILY = "flatness"

BASE = fedavg()

Lam = Annotated[
    float,
    "The pull back to the weights received has the weight 1 / lam: the larger, the weaker.",
    Above(0),
]


def fedspeed(
    rho: Rho = 0.1,
    lam: Lam = 10.0,
    mix: Annotated[
        float,
        "Weight of the gradient uphill; the rest is that of the gradient at the weights.",
        AtLeast(0),
        AtMost(1),
    ] = 1.0,
    duals: Annotated[
        Literal["cohort", "all"],
        "The server adds the mean dual of the cohort (as printed), or of all parties (as coded).",
    ] = "cohort",
) -> Algorithm:
    """FedSpeed. Sun et al., ICLR 2023: steps along
    (1 - mix) g + mix grad f(y + e) + (y - w + h_i) / lam, with e = rho g / ||g||.

    Then h_i <- h_i + y_i - w; the paper's corrections are -h_i / lam, and `mix` its alpha. Each
    party sends y_i + h_i, and w is their mean over the cohort, each weighed alike. In the authors'
    code the server adds the mean of h_i over all parties, as FedDyn does: `duals` "all". With
    the whole cohort the two are one.

    The text prints e = rho g, and says that rho is divided by ||g||, as it is here and in the code.
    Numbers are those of the code, whose lamb is 1 / lam. Without an ascent (rho or mix 0) and with
    `duals` "all" the weights are FedDyn's for alpha = 1 / lam, which serves the mean of the y_i.
    """
    has_ascent = rho > 0 and mix > 0
    is_printed = duals == "cohort"
    return replace(
        BASE,
        name="fedspeed",
        hyper={"rho": rho, "lam": lam, "mix": mix},
        init=init,
        plan=plan_uniformly,
        direction=direction if has_ascent else without_ascent,
        finish=finish_shifted if is_printed else finish,
        aggregate=BASE.aggregate if is_printed else aggregate,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Start each h_i at 0."""
    return State(models, buffers, parties=start_duals(models, info))


def ascent(local: Local) -> Ascent:
    """Return an ascent of length rho, mixed with the gradient at the weights."""
    return Ascent(rho=local.hyper["rho"], mix=local.hyper["mix"])


def terms(local: Local) -> Affine:
    """Return (y - w + h) / lam."""
    pull = 1 / local.hyper["lam"]
    return Affine(pull=pull, add=tree.map(lambda h: pull * h, local.own["h"]))


direction = AscentDirection(ascent, terms)
without_ascent = AffineDirection(terms)


def finish_shifted(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload y_i + h_i with the new h_i, which the party keeps."""
    h = move_dual(local)
    shifted = local._replace(params=tree.map(torch.add, local.params, h))
    upload, _ = BASE.finish(task, shifted, work)
    return upload, {"h": h}


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload y_i: the server can tell the new h_i by it, which the party keeps."""
    upload, _ = BASE.finish(task, local, work)
    return upload, {"h": move_dual(local)}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper = NONE) -> State:
    """Add the mean of all h_i to that of the y_i."""
    mean = BASE.aggregate(state, plan, total, hyper)
    models = add_mean_dual(state.models, total["models"], state.parties["h"])
    return replace(mean, models=models)
