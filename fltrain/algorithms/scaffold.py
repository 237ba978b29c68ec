"""Control variates take the parties' drift out of their steps."""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from .. import tree
from ..affine import Affine, Corrected
from ..interface import Algorithm, Info, Local, Plan, State, Task, Work
from ..tree import Tree
from .fedavg import ServerLr, fedavg
from .fednova import effective_steps

__all__ = ["scaffold"]


def scaffold(
    option: Annotated[
        Literal["i", "ii"],
        "A party's new control: its gradient at the weights received, or what its steps amounted to.",
    ] = "ii",
    correction: Annotated[
        Literal["post", "grad"],
        "The correction c - c_i is added behind the momentum, or to the gradient before it.",
    ] = "post",
    weights: Annotated[
        Literal["examples", "uniform"],
        "Local models weigh by their examples, or all alike (the original).",
    ] = "examples",
    server_lr: ServerLr = 1.0,
) -> Algorithm:
    """SCAFFOLD. Karimireddy et al., ICML 2020, Algorithm 1; Li et al., ICDE 2022, Algorithm 2: each step is corrected by c - c_i.

    The controls c (server) and c_i (parties) start at 0 and cover trained parameters only.
    option, the new c_i: "i", the gradient over all examples of the party at the weights w received (statistics of batch norm frozen, no weight
    decay); "ii", c_i - c + (w - y_i) / (lr tau_i). Then c <- c + (1/P) sum over the cohort of (new c_i - c_i): c is the mean of all c_i.

    Not as printed in Li et al.: option i is taken at w, as their words and the original have it; the change of c is a sum. Momentum is in neither
    text. With it w - y_i weighs the gradient by a_i >= tau_i (`effective_steps`): before the momentum the correction must be on the gradient's
    scale, so "ii" divides by lr a_i; behind it on that of the steps, so "i" is multiplied by a_i / tau_i. Without momentum a_i is tau_i.

    Where it stops: on quadratics "grad", and "post" without momentum, reach the optimum of all. "post" with momentum cancels drift over a round
    but not in each step, and stops beside it by the order of lr. c weighs all parties alike, so the optimum is that of the unweighted mean of the
    parties' losses, whatever `weights`.
    """
    start = fedavg(server_lr)

    def plan(state: State, cohort: Tensor, round: int, hyper: Tree) -> Plan:
        """Everybody hears c, rounded to the type of the weights."""
        sent = tree.map(lambda c, w: c.to(w.dtype), state.server["c"], state.models)
        weight = torch.ones(len(cohort), dtype=torch.float64) if weights == "uniform" else None
        return replace(start.plan(state, cohort, round, hyper), weight=weight, shared={"c": sent})

    def begin(task: Task, local: Local) -> Local:
        carry = {"correction": tree.map(torch.sub, local.shared["c"], local.own["c"])}
        return local._replace(
            carry=carry | {"grad": task.full_grad(local)} if option == "i" else carry
        )

    def terms(local: Local) -> Affine:
        return (
            Affine(after=local.carry["correction"])
            if correction == "post"
            else Affine(add=local.carry["correction"])
        )

    def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
        a = effective_steps(work.steps, work.momentum)
        if option == "i":
            scale = a / work.steps if correction == "post" else 1.0
            control = tree.map(lambda g: g.double() * scale, local.carry["grad"])
        else:
            scale = work.lr * (work.steps if correction == "post" else a)
            control = tree.map(
                lambda d, w, y: (w.double() - y.double()) / scale - d,
                local.carry["correction"],
                local.start,
                local.params,
            )
        own = {"c": tree.map(lambda new, old: new.to(old.dtype), control, local.own["c"])}
        upload, _ = start.finish(task, local, work)
        return upload | {
            "c": tree.map(lambda new, old: new.double() - old.double(), own["c"], local.own["c"])
        }, own

    def aggregate(state: State, plan: Plan, total: Tree, hyper: Tree) -> State:
        """The changes of the controls come unweighted."""
        n_parties = len(tree.leaves(state.parties)[0])
        server = {
            "c": tree.map(
                lambda c, change: c + change[0] / n_parties, state.server["c"], total["c"]
            )
        }
        return replace(start.aggregate(state, plan, total, hyper), server=server)

    return replace(
        start,
        name="scaffold",
        init=init,
        plan=plan,
        begin=begin,
        direction=Corrected(terms),
        finish=finish,
        aggregate=aggregate,
        traffic=traffic,
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
    """c in float64: it differs from the mean of the stored c_i by one rounding of 2^-53 a round, whatever the type of the weights."""
    zero = tree.zeros_like(tree.index(models, 0))
    return State(
        models, buffers, {"c": tree.map(Tensor.double, zero)}, {"c": tree.repeat(zero, len(info.n))}
    )


def traffic(state: State, plan: Plan, task: Task, hyper: Tree) -> tuple[Tensor, Tensor]:
    """Parameters and as many controls each way; floating-point buffers have no control and travel once."""
    moved = torch.full_like(plan.party, 2 * tree.nbytes(state.models) + tree.nbytes(state.buffers))
    return moved, moved
