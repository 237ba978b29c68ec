"""Each class trains weights of its own, and what pulls a party back depends on how skewed its labels are."""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..interface import Algorithm, Batch, Info, Local, Plan, State, Step, Task
from ..tree import Tree
from ._class_tensors import NORMALISE, disjoint, gram_schmidt
from .fedavg import fedavg

__all__ = ["fedmoc"]

BASE = fedavg()


def fedmoc(
    a0: Annotated[
        float,
        "Largest weight mu of the pull back to the weights received, at least 0; the paper wants 1 to 4, 0 is no pull.",
    ] = 1.0,
    beta0: Annotated[
        float, "MAP beta of a party up to which mu is a0; above 0, with --branch power at most 1."
    ] = 0.01,
    beta1: Annotated[float, "MAP beta of a party from which on mu is 0, at least beta0."] = 1.0,
    branch: Annotated[
        Literal["quotient", "power", "continuous"],
        "mu between beta0 and beta1: a0 beta0 / (10 beta), a0 beta0^(10 beta), or a0 beta0 / beta.",
    ] = "quotient",
    coefficients: Annotated[
        Literal["disjoint", "gram-schmidt-minmax", "gram-schmidt-abs", "gram-schmidt-clip", "ones"],
        "Coefficients of the weights for each class: weights of its own, the paper's Gram-Schmidt brought to 0..1 in one of three ways, or 1.",
    ] = "disjoint",
    delta_min: Annotated[
        float, "Disjoint coefficients are uniform on (delta_min, 1], in 0..1; at 1 all are 1."
    ] = 1.0,
) -> Algorithm:
    """FedMOC: MAP beta and orthogonal coefficients. Cha, Chang, Information 2025, Algorithm 1; the name is ours, the text gives none.

    Party k steps along Delta_k * (g + weight_decay y + mu (y - w)), element by element, with mu = mu(beta_k) and Delta_k = sum_i x_k^i Delta(i), x_k
    its proportions of classes. beta_k is the MAP estimate of a Dirichlet concentration from its counts (`niidpart.heterogeneity.map_beta`). Counts,
    x, mu and Delta_k never leave the party; that State.server holds x and mu is the simulation's.

    mu(beta): a0 up to beta0, 0 from beta1, between them `branch`: "quotient" a0 beta0 / (10 beta), "power" a0 beta0^(10 beta), both readings of a
    formula that cannot be read with certainty, or "continuous" a0 beta0 / beta, ours.
    coefficients: the text wants Delta(i) of norm 1, orthogonal, in 0..1, with a positive way from the input to output i. Tensors that are not
    negative are orthogonal only if their supports are disjoint; so "disjoint" deals each weight's numbers out to the classes at random, with
    coefficients uniform on (delta_min, 1], and gives up the norm. Every class has its way. All numbers then train at 1/r of the rate where classes
    are even: choose lr for that. "gram-schmidt-..." is the text's recipe for each weight, brought to 0..1 by (v - min) / (max - min), |v| / max or
    max(v, 0) / max; the tensors are not orthogonal any more. It keeps r models in the state. "ones": Delta = 1, with a0 = 0 FedAvg.

    The distance to w is squared, as in FedProx, which the text cites; it prints a norm. Weight decay is inside the product, so a number of
    coefficient 0 does not move at all. Biases and norm layers have coefficient 1, but output bias i belongs to class i.
    """
    _check(a0, beta0, beta1, branch, delta_min)
    if coefficients == "ones" and a0 == 0:
        return replace(BASE, name="fedmoc")

    def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
        """x [P, r], mu [P]; the tensors as `disjoint` or `gram_schmidt` gives them; told [P]: who has the seed that they are drawn from."""
        one, r = tree.index(models, 0), info.counts.shape[1]
        server: Tree = {"mu": pull(info.beta, a0, beta0, beta1, branch)} if a0 else {}
        if coefficients == "ones":
            return State(models, buffers, server)
        if coefficients == "disjoint":
            server |= disjoint(one, task.kinds, r, info.seed, delta_min)
        else:
            server |= gram_schmidt(
                one, task.kinds, r, info.seed, NORMALISE[coefficients.removeprefix("gram-schmidt-")]
            )
        x = info.counts.double() / info.counts.sum(1, keepdim=True).clamp(min=1)
        return State(
            models, buffers, server | {"x": x, "told": torch.zeros(len(x), dtype=torch.bool)}
        )

    return replace(
        BASE,
        name="fedmoc",
        init=init,
        plan=plan,
        begin=begin,
        direction=direction,
        aggregate=aggregate,
        traffic=traffic,
        decay="algorithm",
    )


def pull(beta: Tensor, a0: float, beta0: float, beta1: float, branch: str) -> Tensor:
    """mu [P] float64 of each party's beta [P]. Information 2025, section 3.3; never rises with beta."""
    if branch == "quotient":
        between = a0 * beta0 / (10 * beta)
    elif branch == "power":
        between = a0 * beta0 ** (10 * beta)
    else:
        between = a0 * beta0 / beta
    return torch.where(beta <= beta0, a0, torch.where(beta >= beta1, 0.0, between))


def plan(state: State, cohort: Tensor, round: int, hyper: Tree) -> Plan:
    """each: mu [J] in the type of the weights, x [J, r] float64. shared: the tensors Delta(i), as `disjoint` or `gram_schmidt` gives them."""
    s, each, like = state.server, {}, tree.leaves(state.models)[0]
    if "mu" in s:
        each["mu"] = s["mu"].cpu()[cohort].to(like)
    if "x" in s:
        each["x"] = s["x"].cpu()[cohort].to(like.device)
    return Plan(
        cohort,
        torch.zeros_like(cohort),
        shared={name: s[name] for name in ("class", "delta") if name in s},
        each=each,
    )


def begin(task: Task, local: Local) -> Local:
    """carry: delta {name: [...]}, the party's Delta_k where it is not 1, in the type of the weights. Made here, so that a round never holds all."""
    return (
        local._replace(carry={"delta": _mixed(local.shared, local.each["x"], local.params)})
        if "x" in local.each
        else local
    )


def direction(task: Task, local: Local, batch: Batch) -> Step:
    step, each, decay = task.grad(local, batch), local.each, local.hyper["weight_decay"]
    grad = _decayed(step.grad, local.params, decay)
    if "mu" in each:
        grad = tree.map(lambda g, y, w: g + each["mu"] * (y - w), grad, local.params, local.start)
    if "delta" in local.carry:
        delta = local.carry["delta"]
        grad = {name: g * delta[name] if name in delta else g for name, g in grad.items()}
    return step._replace(grad=grad)


def _decayed(grad: Tree, params: Tree, decay: float | Tensor) -> Tree:
    """grad + decay params; a number is added as the executor does it, and 0 leaves the gradient as it is. A tensor is one of many jobs at once."""
    if isinstance(decay, Tensor):
        return tree.map(lambda g, y: g + decay * y, grad, params)
    return tree.map(lambda g, y: torch.add(g, y, alpha=decay), grad, params) if decay else grad


def aggregate(state: State, plan: Plan, total: Tree, hyper: Tree) -> State:
    """FedAvg's; the cohort has the seed from now on."""
    mean = BASE.aggregate(state, plan, total, hyper)
    if "told" not in state.server:
        return mean
    told = state.server["told"].cpu().clone()
    told[plan.party] = True
    return replace(mean, server=state.server | {"told": told})


def traffic(state: State, plan: Plan, task: Task, hyper: Tree) -> tuple[Tensor, Tensor]:
    """A model each way, and 8 bytes of seed the first time, from which a party draws the tensors itself; no model is needed for each class."""
    up = torch.full_like(plan.party, tree.nbytes(state.models) + tree.nbytes(state.buffers))
    return up + 8 * ~state.server["told"].cpu()[plan.party] if "told" in state.server else up, up


def _mixed(shared: Tree, x: Tensor, params: Tree) -> Tree:
    """{name: [...]}: sum_i x^i Delta(i) for the proportions x [r]."""
    if "class" not in shared:
        return {
            name: _combined(x.to(delta.dtype), delta) for name, delta in shared["delta"].items()
        }
    out = {name: x[owner.long()].to(params[name].dtype) for name, owner in shared["class"].items()}
    return {
        name: value * shared["delta"][name] if name in shared.get("delta", {}) else value
        for name, value in out.items()
    }


def _combined(x: Tensor, delta: Tensor) -> Tensor:
    """[...]: sum_i x [i] delta [i], in this order. Not a matrix product, whose last bits would depend on how many jobs are made at once."""
    total = x[0] * delta[0]
    for part, tensor in zip(x[1:], delta[1:], strict=True):
        total = torch.addcmul(total, part, tensor)
    return total


def _check(a0: float, beta0: float, beta1: float, branch: str, delta_min: float) -> None:
    if not a0 >= 0:
        raise UsageError(f"a0 is {a0}; it must be at least 0")
    if not 0 < beta0 <= beta1:
        raise UsageError(
            f"beta0 is {beta0} and beta1 {beta1}; they must be above 0, and beta1 not below beta0"
        )
    if branch == "power" and beta0 > 1:
        raise UsageError(
            f"beta0 is {beta0}; with branch 'power' it must be at most 1, or mu would grow with beta"
        )
    if not 0 <= delta_min <= 1:
        raise UsageError(f"delta_min is {delta_min}; it must be in 0..1")
