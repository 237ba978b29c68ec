"""Each class trains weights of its own; what pulls a party back depends on its label skew.

State.server: `mu` [P]; `x` [P, r], class proportions; the tensors Delta(i) as `_class_tensors`
gives them, `class` and `delta`; `told` [P], which parties have got the seed that they are drawn
from. What the options make unnecessary is left out. Carried: delta, the party's Delta_k [...].
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from .. import tree
from ..directions.affine import Affine, AffineDirection
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
    UsageError,
)
from ..tree import Tree
from ._class_tensors import NORMALISE, disjoint, gram_schmidt
from .fedavg import NONE, fedavg

__all__ = ["fedmoc"]

FAMILY = "per-class"

BASE = fedavg()

A0 = Annotated[
    float,
    "Largest weight mu of the pull back to the weights received; the paper wants 1 to 4, 0 is "
    "no pull.",
    AtLeast(0),
]
Beta0 = Annotated[
    float,
    "MAP beta of a party up to which mu is a0; with --branch power at most 1.",
    Above(0),
]
Beta1OfMu = Annotated[float, "MAP beta of a party from which on mu is 0; at least beta0.", Above(0)]
Branch = Annotated[
    Literal["quotient", "power", "continuous"],
    "mu between beta0 and beta1: a0 beta0 / (10 beta), a0 beta0^(10 beta), or a0 beta0 / beta.",
]
Coefficients = Annotated[
    Literal["disjoint", "gram-schmidt-minmax", "gram-schmidt-abs", "gram-schmidt-clip", "ones"],
    "Coefficients of the weights for each class: weights of its own, the paper's Gram-Schmidt "
    "brought to 0..1 in one of three ways, or 1.",
]
DeltaMin = Annotated[
    float,
    "Disjoint coefficients are uniform on (delta_min, 1]; at 1 all are 1.",
    AtLeast(0),
    AtMost(1),
]


def fedmoc(
    a0: A0 = 1.0,
    beta0: Beta0 = 0.01,
    beta1: Beta1OfMu = 1.0,
    branch: Branch = "quotient",
    coefficients: Coefficients = "disjoint",
    delta_min: DeltaMin = 1.0,
) -> Algorithm:
    """FedMOC: MAP beta and orthogonal coefficients. Cha, Chang, Information 2025, Algorithm 1; the
    name is ours, the text gives none.

    Party k steps along Delta_k * (g + weight_decay y + mu (y - w)), element by element, with
    mu = mu(beta_k) and Delta_k = sum_i x_k^i Delta(i), x_k its proportions of classes. beta_k is
    the MAP estimate of a Dirichlet concentration from its counts. Counts, x, mu and Delta_k never
    leave the party; that State.server holds x and mu is the simulation's.

    mu(beta): a0 up to beta0, 0 from beta1, between them `branch`: "quotient" a0 beta0 / (10 beta),
    "power" a0 beta0^(10 beta), both readings of a formula that cannot be read with certainty, or
    "continuous" a0 beta0 / beta, ours.

    coefficients: the text wants Delta(i) of norm 1, orthogonal, in 0..1, with a positive way from
    the input to output i. Tensors that are not negative are orthogonal only if their supports are
    disjoint; so "disjoint" deals each weight's numbers out to the classes at random, with
    coefficients uniform on (delta_min, 1], and gives up the norm. Every class has its way. All
    numbers then train at 1/r of the rate where classes are even: choose lr for that.
    "gram-schmidt-..." is the text's recipe for each weight, brought to 0..1 by
    `(v - min) / (max - min)`, `|v| / max` or `max(v, 0) / max`; the tensors are not orthogonal any
    more. It keeps r models in the state. "ones": Delta = 1, with a0 = 0 FedAvg.

    The distance to w is squared, as in FedProx, which the text cites; it prints a norm. Weight
    decay is inside the product, so a number of coefficient 0 does not move at all. Biases and norm
    layers have coefficient 1, but output bias i belongs to class i.

    Says of its state (`--internals`): `mu` of each party, and `mu_mean`.
    """
    if beta1 < beta0:
        raise UsageError(f"beta0 is {beta0} and beta1 {beta1}; beta1 must not be below beta0")
    if branch == "power" and beta0 > 1:
        raise UsageError(
            f"beta0 is {beta0}; with branch 'power' it must be at most 1, or mu would grow with "
            "beta"
        )
    if coefficients == "ones" and a0 == 0:
        return replace(BASE, name="fedmoc")
    return replace(
        BASE,
        name="fedmoc",
        hyper={"a0": a0, "beta0": beta0, "beta1": beta1, "delta_min": delta_min},
        init=Start(branch, coefficients),
        plan=plan,
        begin=begin,
        direction=AffineDirection(terms),
        aggregate=aggregate,
        traffic=traffic,
        describe=describe,
        decay="algorithm",
    )


@dataclass(frozen=True)
class Start:
    """The `init`, by the branch of mu and the kind of coefficients."""

    branch: str
    coefficients: str

    def __call__(
        self,
        task: Task,
        info: Info,
        models: Tree,
        buffers: Tree,
        hyper: Hyper,
    ) -> State:
        server: Tree = {}
        a0, beta0, beta1 = hyper["a0"], hyper["beta0"], hyper["beta1"]
        if a0:
            server["mu"] = pull(info.beta, a0, beta0, beta1, self.branch)
        if self.coefficients != "ones":
            one = tree.index(models, 0)
            server |= draw_tensors(self.coefficients, one, task, info, hyper["delta_min"])
            server["x"] = info.counts.double() / info.counts.sum(1, keepdim=True).clamp(min=1)
            server["told"] = torch.zeros(len(info.counts), dtype=torch.bool)
        return State(models, buffers, server)


def pull(
    beta: Tensor,
    a0: float,
    beta0: float,
    beta1: float,
    branch: str,
) -> Tensor:
    """Return mu [P] float64 of each party's beta [P]. Information 2025, section 3.3.

    mu never rises with beta.
    """
    if branch == "quotient":
        between = a0 * beta0 / (10 * beta)
    elif branch == "power":
        between = a0 * beta0 ** (10 * beta)
    else:
        between = a0 * beta0 / beta
    return torch.where(beta <= beta0, a0, torch.where(beta >= beta1, 0.0, between))


def draw_tensors(
    coefficients: str,
    models: Tree,
    task: Task,
    info: Info,
    delta_min: float,
) -> Tree:
    """Return the tensors Delta(1..r), as `_class_tensors` gives them."""
    r = info.counts.shape[1]
    if coefficients == "disjoint":
        return disjoint(models, task.kinds, r, info.seed, delta_min)
    normalise = NORMALISE[coefficients.removeprefix("gram-schmidt-")]
    return gram_schmidt(models, task.kinds, r, info.seed, normalise)


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Send each job mu [J], in the type of the weights, and x [J, r]; broadcast the Delta(i)."""
    server, like = state.server, tree.leaves(state.models)[0]
    each = {}
    if "mu" in server:
        each["mu"] = server["mu"].cpu()[cohort].to(like)
    if "x" in server:
        each["x"] = server["x"].cpu()[cohort].to(like.device)
    shared = {name: value for name, value in server.items() if name in ("class", "delta")}
    return replace(BASE.plan(state, cohort, round, hyper), shared=shared, each=each)


def begin(task: Task, local: Local) -> Local:
    """Carry the party's Delta_k {name: [...]}, where it is not 1, in the type of the weights.

    It is made here, job by job, so that a round never holds those of all.
    """
    if "x" not in local.each:
        return local
    delta = mix_tensors(local.shared, local.each["x"], local.params)
    return local._replace(carry={"delta": delta})


def terms(local: Local) -> Affine:
    """Step along Delta_k * (g + weight_decay y + mu (y - w))."""
    return Affine(
        pull=local.each.get("mu", 0.0),
        scale=local.carry.get("delta", {}),
        decay=local.hyper["weight_decay"],
    )


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper = NONE) -> State:
    """Take FedAvg's mean; the cohort has the seed from now on."""
    mean = BASE.aggregate(state, plan, total, hyper)
    if "told" not in state.server:
        return mean
    told = state.server["told"].cpu().clone()
    told[plan.party] = True
    return replace(mean, server=state.server | {"told": told})


def traffic(state: State, plan: Plan, task: Task, hyper: Hyper = NONE) -> tuple[Tensor, Tensor]:
    """Count a model each way, and 8 bytes of seed down the first time.

    From the seed a party draws the tensors itself: no model is sent for each class.
    """
    up = torch.full_like(plan.party, tree.nbytes(state.models) + tree.nbytes(state.buffers))
    if "told" not in state.server:
        return up, up
    is_new = ~state.server["told"].cpu()[plan.party]
    return up + 8 * is_new, up


def describe(state: State, hyper: Hyper = NONE) -> Tree:
    """Say the weight mu of each party's pull, where there is one."""
    mu = state.server.get("mu")
    return {} if mu is None else {"mu": mu, "mu_mean": mu.mean()}


def mix_tensors(shared: Tree, x: Tensor, params: Tree) -> Tree:
    """Return {name: [...]}: sum_i x^i Delta(i) for the proportions x [r]."""
    if "class" not in shared:
        return {name: _combine(x.to(delta.dtype), delta) for name, delta in shared["delta"].items()}
    coefficients, mixed = shared.get("delta", {}), {}
    for name, owner in shared["class"].items():
        value = x[owner.long()].to(params[name].dtype)
        mixed[name] = value * coefficients[name] if name in coefficients else value
    return mixed


def _combine(x: Tensor, delta: Tensor) -> Tensor:
    """Return sum_i x [i] delta [i], in this order.

    Not a matrix product, whose last bits would depend on how many jobs are made at once.
    """
    total = x[0] * delta[0]
    for part, tensor in zip(x[1:], delta[1:], strict=True):
        total = torch.addcmul(total, part, tensor)
    return total
