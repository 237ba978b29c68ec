"""The server looks for a minimum that is flat for all: parties start uphill of the model.

State: models [1, ...], the weights that are sent, uphill of those served; server.model [1, ...],
what is served; parties.h [P, ...] (`_duals.py`).
"""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from .. import tree
from ..directions.affine import AffineDirection
from ..directions.ascent import Ascent, AscentDirection, measure_length
from ..interface import Algorithm, AtLeast, Hyper, Info, Local, Plan, Served, State, Task
from ..tree import Tree
from ._duals import start_duals
from .fedavg import NONE, fedavg
from .fedspeed import Lam, finish, terms

__all__ = ["fedgloss"]

FAMILY = "flatness"

BASE = fedavg()


def fedgloss(
    rho: Annotated[
        float, "How far uphill from the model the parties start; 0 is at the model.", AtLeast(0)
    ] = 0.15,
    local_rho: Annotated[
        float,
        "How far uphill from its weights each gradient of a party is taken; 0 is at the weights.",
        AtLeast(0),
    ] = 0.15,
    lam: Lam = 10.0,
) -> Algorithm:
    """FedGloSS. Caldarola et al., CVPR 2025: parties start from
    s = w + rho D / ||D||, D = sum_i p_i (s - y_i) of the last round, which led downhill.

    Each steps along grad f(y + e) + (y - s + h_i) / lam with FedSAM's e = local_rho g / ||g||, the
    printed "SAM"; local_rho 0 is the printed "SGD", one gradient a step. Then h_i <- h_i + y_i - s
    and w <- w - D + (1/P) sum over all parties of h_i: lam is the paper's beta, its dual variables
    are -h_i / lam. D and h_i start at 0. w is served. Nothing but one model goes each way.

    The authors' code also divides the server's dual by the number of parties in the round, which
    the printed algorithm does not; starts a party's h_i anew from each epoch's first weights (one
    epoch there); and can raise rho over the first rounds, which is not offered. Numbers are those
    of its example for CIFAR-10. D weighs parties by examples, the h_i alike, both as printed.
    """
    return replace(
        BASE,
        name="fedgloss",
        hyper={"rho": rho, "local_rho": local_rho, "lam": lam},
        init=init,
        direction=direction if local_rho else without_ascent,
        finish=finish,
        aggregate=aggregate,
        serve=serve,
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Send the start itself first: there is no way downhill yet."""
    served = {"model": tree.clone(models)}
    return State(models, buffers, server=served, parties=start_duals(models, info))


def ascent(local: Local) -> Ascent:
    """Return an ascent of length local_rho."""
    return Ascent(rho=local.hyper["local_rho"])


direction = AscentDirection(ascent, terms)
without_ascent = AffineDirection(terms)


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Step from the model that is served, and send what lies uphill of it."""
    mean = BASE.aggregate(state, plan, total, hyper)
    d = tree.map(lambda s, y: s.double() - y, state.models, total["models"])

    def step(w: Tensor, d: Tensor, h: Tensor) -> Tensor:
        return (w.double() - d + h.mean(0, dtype=torch.float64)).to(w.dtype)

    model = tree.map(step, state.server["model"], d, state.parties["h"])
    per_length = hyper["rho"] / measure_length(d)
    sent = tree.map(lambda w, d: w + (per_length * d).to(w.dtype), model, d)
    return replace(mean, models=sent, server={"model": model})


def serve(state: State, hyper: Hyper = NONE) -> Served:
    """Serve the model, and not what is sent."""
    return BASE.serve(replace(state, models=state.server["model"]), hyper)
