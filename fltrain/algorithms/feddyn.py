"""Each party's loss is bent so that its minimum becomes that of all.

State: server.mean [1, ...], the mean of the y_i, which is served; parties.h [P, ...], and
parties.size [P] float64 where alpha goes by it.
"""

from dataclasses import replace
from typing import Annotated, Literal

from .. import tree
from ..directions.affine import Affine, AffineDirection
from ..interface import Above, Algorithm, Hyper, Info, Local, Plan, Served, State, Task, Work
from ..tree import Tree
from ._duals import add_mean_dual, move_dual, start_duals
from ._weights import plan_uniformly
from .fedavg import NONE, fedavg

__all__ = ["feddyn"]

FAMILY = "control"

BASE = fedavg()


def feddyn(
    alpha: Annotated[
        float,
        "Weight of the dynamic regularisation. There is no 0: it is not FedAvg, as the server "
        "would still extrapolate.",
        Above(0),
    ] = 0.01,
    alphas: Annotated[
        Literal["equal", "by-size"],
        "All parties have alpha, or alpha over their size, of which the mean is 1.",
    ] = "equal",
) -> Algorithm:
    """FedDyn. Acar et al., ICLR 2021, Algorithm 1: dynamic regularisation, by a memory h_i [P, ...]
    of what each party moved.

    Party: minimises f_i(y) + (alpha/2) ||y - w||^2 + alpha <y, h_i>, that is, steps along
    g + alpha (y - w + h_i); then h_i <- h_i + y_i - w. Server: w <- mean over the cohort of
    y_i + (1/P) sum over all parties of h_i. h_i = 0 at the start. The paper's gradient memory of
    party i is -alpha h_i, and its server's h is -alpha times the mean of h_i.

    Evaluated is the mean of the y_i, as in the authors' code, not w. Means weigh parties equally,
    as the sum of h_i demands. The authors' code divides alpha by each party's size over the mean
    size (`alphas` is "by-size"), which is not in the paper; it clips gradients too (`--clip-norm
    10`). Only parameters have an h.
    """
    is_equal = alphas == "equal"
    return replace(
        BASE,
        name="feddyn",
        hyper={"alpha": alpha},
        init=init if is_equal else init_by_size,
        plan=plan_uniformly,
        direction=AffineDirection(terms if is_equal else terms_by_size),
        finish=finish if is_equal else finish_by_size,
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
    """Start each h_i at 0. server: the mean of the y_i, which is served; at first the start."""
    mean = {"mean": tree.clone(models)}
    return State(models, buffers, server=mean, parties=start_duals(models, info))


def init_by_size(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper,
) -> State:
    """Note each party's size besides, over the mean of those that hold examples."""
    state = init(task, info, models, buffers, hyper)
    n = info.n.double()
    mean = n.sum() / (n > 0).sum()
    size = (n / mean).to(tree.leaves(models)[0].device)
    return replace(state, parties=state.parties | {"size": size})


def terms(local: Local) -> Affine:
    """Return alpha (y - w) + alpha h."""
    alpha = local.hyper["alpha"]
    return Affine(pull=alpha, add=tree.map(lambda h: alpha * h, local.own["h"]))


def terms_by_size(local: Local) -> Affine:
    """Return the same with the party's own alpha."""
    alpha = local.hyper["alpha"] / local.own["size"]
    return Affine(pull=alpha, add=tree.map(lambda h: alpha.to(h.dtype) * h, local.own["h"]))


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    upload, _ = BASE.finish(task, local, work)
    return upload, {"h": move_dual(local)}


def finish_by_size(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    upload, own = finish(task, local, work)
    return upload, own | {"size": local.own["size"]}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper = NONE) -> State:
    """Add the mean of all h_i to that of the y_i. state.parties holds those of this round."""
    mean = BASE.aggregate(state, plan, total, hyper)
    models = add_mean_dual(state.models, total["models"], state.parties["h"])
    return replace(mean, models=models, server={"mean": mean.models})


def serve(state: State, hyper: Hyper = NONE) -> Served:
    """Serve the mean of the y_i."""
    return BASE.serve(replace(state, models=state.server["mean"]), hyper)
