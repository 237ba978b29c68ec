"""Control variates take the parties' drift out of their steps.

State: server.c [...] float64, the server's control, without the axis M; parties.c [P, ...], the
c_i, in the type of the weights; server.part [P] float64, n_i / n, where c weighs by examples.
Broadcast: shared.c [...]; sent to one: each.part. Carried: correction, c - c_i, and with option "i"
grad, the gradient at the weights received.
"""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from .. import tree
from ..directions.affine import Affine, AffineDirection
from ..draws import key, order
from ..interface import Algorithm, Hyper, Info, Local, Plan, State, Task, Work
from ..tree import Tree
from ._weights import Weights, weigh_alike
from .fedavg import NONE, ServerLr, fedavg, step_towards_mean
from .fednova import effective_steps

__all__ = ["scaffold"]

FAMILY = "control"

BASE = fedavg()
ControlWeights = Annotated[
    Literal["examples", "uniform"],
    "The server's control is the mean of the parties' controls by their examples, or all alike "
    "(as printed).",
]


def scaffold(
    option: Annotated[
        Literal["i", "ii"],
        "A party's new control: its gradient at the weights received, or what its steps came to.",
    ] = "ii",
    correction: Annotated[
        Literal["post", "grad"],
        "The correction c - c_i is added behind the momentum, or to the gradient before it.",
    ] = "post",
    weights: Weights = "examples",
    server_lr: ServerLr = 1.0,
    control_weights: ControlWeights = "uniform",
    first_control: Annotated[
        Literal["zero", "drawn"],
        "All controls start at 0, or at weights drawn as the model's are (NIID-Bench's code).",
    ] = "zero",
) -> Algorithm:
    """SCAFFOLD. Karimireddy et al., ICML 2020, Algorithm 1; Li et al., ICDE 2022, Algorithm 2: each
    step is corrected by c - c_i.

    The controls c (server) and c_i (parties) start at 0, or all at one draw of weights, and cover
    trained parameters only. The new c_i is, by `option`: "i", the gradient over all examples of the
    party at the weights w received (statistics of batch norm frozen, no weight decay); "ii",
    c_i - c + (w - y_i) / (lr tau_i). Then c <- c + (1/P) sum over the cohort of (new c_i - c_i): c
    is the mean of all c_i.

    Not as printed in Li et al.: option i is taken at w, as their words and the original have it;
    the change of c is a sum. Momentum is in neither text. With it w - y_i weighs the gradient by
    a_i >= tau_i (`effective_steps`). Before the momentum the correction must be on the gradient's
    scale, so "ii" divides by lr a_i; behind it on that of the steps, so "i" is multiplied by
    a_i / tau_i. Without momentum a_i is tau_i.

    Where it stops: on quadratics "grad", and "post" without momentum, reach the optimum of all.
    "post" with momentum cancels drift over a round but not in each step, and misses the optimum by
    the order of lr. Which optimum that is says `control_weights`, whatever `weights` (the original
    weighs models alike): as printed c weighs all parties alike, and the optimum is that of the
    unweighted mean of the parties' losses; by examples, c <- c + sum_i (n_i / n) (new c_i - c_i)
    with n of all parties, it is that of the pooled loss, which other algorithms aim at.
    """
    finish = {
        ("i", "post"): finish_by_gradient_of_steps,
        ("i", "grad"): finish_by_gradient,
        ("ii", "post"): finish_by_steps,
        ("ii", "grad"): finish_by_effective_steps,
    }
    return replace(
        fedavg(server_lr),
        name="scaffold",
        init=_INITS[first_control, control_weights],
        plan=plan_by_examples if weights == "examples" else plan_uniformly,
        begin=begin if option == "ii" else begin_with_gradient,
        direction=AffineDirection(
            terms_after_momentum if correction == "post" else terms_of_gradient
        ),
        finish=finish[option, correction],
        aggregate=aggregate,
        # without a correction of the steps, and with controls that are gradients, any will do
        optimizer="any" if (option, correction) == ("i", "grad") else "sgd",
    )


def init(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Start all controls at 0.

    c is in float64: it differs from the mean of the stored c_i by one rounding of 2^-53 a round,
    whatever the type of the weights.
    """
    zero = tree.zeros_like(tree.index(models, 0))
    server = {"c": tree.map(Tensor.double, zero)}
    return State(models, buffers, server, parties={"c": tree.repeat(zero, len(info.n))})


def init_by_examples(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Keep each party's part of all examples [P] too: c weighs the controls by them."""
    state = init(task, info, models, buffers, hyper)
    part = info.n.double() / info.n.sum()
    return replace(state, server=state.server | {"part": part})


def init_drawn(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    """Start all controls at one draw of weights."""
    return _draw_controls(init(task, info, models, buffers, hyper), info)


def init_drawn_by_examples(
    task: Task,
    info: Info,
    models: Tree,
    buffers: Tree,
    hyper: Hyper = NONE,
) -> State:
    return _draw_controls(init_by_examples(task, info, models, buffers, hyper), info)


def _draw_controls(state: State, info: Info) -> State:
    """Return the state with controls that are the first weights in another order.

    The weights of a layer are drawn alike, so that this is a draw as good as theirs.
    """
    drawn: Tree = {}
    for name, weights in tree.flatten(tree.index(state.models, 0)).items():
        draw = key(info.seed, "scaffold control", name)
        numbers = weights.reshape(-1)
        places = order(draw, 0, len(numbers), numbers.device)
        drawn[name] = numbers[places].reshape(weights.shape)
    control = tree.unflatten(drawn)
    server = state.server | {"c": tree.map(Tensor.double, control)}
    return replace(state, server=server, parties={"c": tree.repeat(control, len(info.n))})


_INITS = {
    ("zero", "uniform"): init,
    ("zero", "examples"): init_by_examples,
    ("drawn", "uniform"): init_drawn,
    ("drawn", "examples"): init_drawn_by_examples,
}


def plan_by_examples(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Broadcast c, rounded to the type of the weights; each party gets its part, if c weighs so."""
    sent = tree.map(lambda c, w: c.to(w.dtype), state.server["c"], state.models)
    plan = replace(BASE.plan(state, cohort, round, hyper), shared={"c": sent})
    if "part" not in state.server:
        return plan
    part = state.server["part"]
    return replace(plan, each={"part": part[cohort.to(part.device)]})


def plan_uniformly(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    return weigh_alike(plan_by_examples(state, cohort, round, hyper))


def begin(task: Task, local: Local) -> Local:
    """Carry the correction c - c_i."""
    correction = tree.map(torch.sub, local.shared["c"], local.own["c"])
    return local._replace(carry={"correction": correction})


def begin_with_gradient(task: Task, local: Local) -> Local:
    """Carry the correction, and the gradient at the weights received."""
    carry = begin(task, local).carry
    return local._replace(carry=carry | {"grad": task.full_grad(local)})


def terms_after_momentum(local: Local) -> Affine:
    return Affine(after=local.carry["correction"])


def terms_of_gradient(local: Local) -> Affine:
    return Affine(add=local.carry["correction"])


def finish_by_gradient(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Option i, before the momentum: the new c_i is the gradient."""
    return _finish(task, local, work, tree.map(Tensor.double, local.carry["grad"]))


def finish_by_gradient_of_steps(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Option i, behind the momentum: the new c_i is the gradient times a_i / tau_i."""
    scale = effective_steps(work.steps, work.momentum) / work.steps
    control = tree.map(lambda g: g.double() * scale, local.carry["grad"])
    return _finish(task, local, work, control)


def finish_by_steps(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Option ii, behind the momentum: the new c_i is c_i - c + (w - y_i) / (lr tau_i)."""
    return _finish(task, local, work, _amount_of_steps(local, work.lr * work.steps))


def finish_by_effective_steps(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Option ii, before the momentum: the new c_i is c_i - c + (w - y_i) / (lr a_i)."""
    a = effective_steps(work.steps, work.momentum)
    return _finish(task, local, work, _amount_of_steps(local, work.lr * a))


def _amount_of_steps(local: Local, scale: float | Tensor) -> Tree:
    """Return c_i - c + (w - y_i) / scale in float64."""

    def amount(correction: Tensor, w: Tensor, y: Tensor) -> Tensor:
        return (w.double() - y.double()) / scale - correction

    return tree.map(amount, local.carry["correction"], local.start, local.params)


def _finish(task: Task, local: Local, work: Work, control: Tree) -> tuple[Tree, Tree]:
    """Upload the model and the change of the control, and keep the control.

    The change is that of the controls as they are stored, so that c stays their mean.
    """
    old = local.own["c"]
    new = tree.map(lambda c, c_old: c.to(c_old.dtype), control, old)
    change = tree.map(lambda c, c_old: c.double() - c_old.double(), new, old)
    if "part" in local.each:
        change = tree.map(lambda d: local.each["part"] * d, change)
    upload, _ = BASE.finish(task, local, work)
    # not weighted by `share`: c is the mean over all parties, and not over those of the cohort
    return upload | {"c": change}, {"c": new}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Step towards the mean model, as FedAvg does, and add the mean of the changes to c.

    The changes come summed over the cohort: weighted by examples, or all alike and then times 1/P.
    """
    averaged = step_towards_mean(state, plan, total, hyper)
    is_weighted = "part" in state.server
    divisor = 1 if is_weighted else len(tree.leaves(state.parties)[0])

    def add(c: Tensor, change: Tensor) -> Tensor:
        return c + change[0] / divisor  # [0]: sums are by model, and there is one

    control = tree.map(add, state.server["c"], total["c"])
    return replace(averaged, server=state.server | {"c": control})
