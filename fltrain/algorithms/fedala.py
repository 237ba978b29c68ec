"""What a party begins a round with: its own model, moved towards the received one, number by
number.

State: models and buffers [1, ...], the global model; parties.params and parties.buffers [P, ...],
each party's model after its last round; parties.mixing [P, ...], of the mixed layers alone, how far
each number goes; parties.learned [P] bool, whether these have been learned once. Broadcast:
shared.steps, of this round's learning. Carried: mixing, learned.
"""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from .. import tree
from ..draws import fold
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
from ..named_layers import find_layers, has_head
from ..tree import Tree
from .fedavg import fedavg
from .solo import serve as serve_own

__all__ = ["fedala"]

FAMILY = "personal"

BASE = fedavg()
_SAMPLE = 0xA1A  # tells the draw of the sample from the other draws of a job
_SETTLING = 10  # steps by whose losses it is told that the mixture has been learned


def fedala(
    mixed: Annotated[
        str,
        "Layers in which a party mixes its model with the received one: head (what takes the "
        "features), a layer's name, or a kind; several with a + between; '' for none, which is "
        "FedAvg.",
    ] = "head",
    mixing_lr: Annotated[float, "Step of the numbers by which layers are mixed.", Above(0)] = 1.0,
    share: Annotated[
        float, "Share of a party's training examples that they are learned on.", Above(0), AtMost(1)
    ] = 0.8,
    mixing_steps: Annotated[int, "Steps of a round in which they are learned.", AtLeast(1)] = 1,
    first_steps: Annotated[
        int, "Steps at most the first time, until the loss settles.", AtLeast(1)
    ] = 20,
    threshold: Annotated[
        float, "The loss has settled where that of ten steps deviates less.", AtLeast(0)
    ] = 0.1,
) -> Algorithm:
    """FedALA. Zhang et al., AAAI 2023, Algorithm 1: FedAvg whose parties begin each round between
    the model received and their own last one, as far as each number learns.

    Below the mixed layers a party takes the received model Theta. There it begins from Theta_i +
    (Theta - Theta_i) W, number by number, where W, at first 1, takes steps -mixing_lr (grad of the
    loss) (Theta - Theta_i), kept between 0 and 1: `mixing_steps` in a round, the first time up to
    `first_steps`, until the loss of ten steps in a row deviates by less than `threshold` (the
    authors' code sets no bound, and may not end). W stays with the party, and so does the model
    that it trains from there, which is served as `personal_*`; the server averages those by
    examples.

    A step of W is along the gradient over the whole sample, drawn anew each round at random; the
    authors' code cuts it into batches, and a step of theirs is an epoch of it. It is taken in eval
    mode. Statistics of norms are the received ones. In round 1 both models are one, and nothing is
    learned.

    Examples
    --------
    >>> fedala(mixed="").hyper
    {'mixed': ''}
    """
    if not mixed:
        return replace(BASE, name="fedala", hyper={"mixed": ""})
    return replace(
        BASE,
        name="fedala",
        hyper={
            "mixed": mixed,
            "mixing_lr": mixing_lr,
            "share": share,
            "mixing_steps": mixing_steps,
            "first_steps": first_steps,
            "threshold": threshold,
        },
        init=init,
        plan=plan,
        begin=begin,
        finish=finish,
        personal=serve_own,
        features=has_head(mixed),
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Give each party the common start, and mixtures that are the received model."""
    names = find_layers(task, hyper["mixed"]).params
    start = tree.index(models, 0)
    mixing = {name: torch.ones_like(w) for name, w in start.items() if name in names}
    own = {"params": start, "buffers": tree.index(buffers, 0), "mixing": mixing}
    parties = tree.repeat(own, len(info.n))
    # who holds nothing never learns, and must not make all others wait for a first time
    learned = (info.n == 0).to(tree.leaves(models)[0].device)
    return State(models, buffers, parties=parties | {"learned": learned})


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper) -> Plan:
    """Say how many steps mixtures are learned by: more where one of the cohort has not yet."""
    learned = state.parties["learned"].cpu()[cohort.cpu()]
    n_steps = hyper["mixing_steps"]
    if not bool(learned.all()):
        n_steps = max(n_steps, hyper["first_steps"])
    if round == 1:
        n_steps = 0  # all models are the common start
    return replace(BASE.plan(state, cohort, round, hyper), shared={"steps": torch.tensor(n_steps)})


def begin(task: Task, local: Local) -> Local:
    """Learn the mixture, and begin from it."""
    n_steps = int(local.shared["steps"])
    mixing = _learn(task, local, n_steps) if n_steps else local.own["mixing"]
    learned = local.own["learned"] | (n_steps > 0)
    return local._replace(params=_mix(local, mixing), carry={"mixing": mixing, "learned": learned})


def _learn(task: Task, local: Local, n_steps: int) -> Tree:
    """Return the numbers of the mixture after so many steps, or fewer of a party's own.

    No step is left out, since jobs may be stacked: one that does not count changes nothing.
    """
    hyper, learned = local.hyper, local.own["learned"]
    mixing: Tree = local.own["mixing"]
    most = torch.where(learned, hyper["mixing_steps"], hyper["first_steps"])
    has_settled = torch.zeros_like(learned)
    losses: list[Tensor] = []
    for number in range(n_steps):
        there = local._replace(params=_mix(local, mixing))
        draw = fold(local.key, _SAMPLE)
        grads, loss = task.sample_grad(there, mixing, hyper["share"], draw)
        counts = (number < most) & ~has_settled
        mixing = _move(local, mixing, grads, counts)
        losses.append(loss)
        if len(losses) > _SETTLING:
            spread = torch.stack(losses[-_SETTLING:]).std(correction=0)
            has_settled = has_settled | (~learned & (spread < hyper["threshold"]))
    return mixing


def _move(local: Local, mixing: Tree, grads: Tree, counts: Tensor) -> Tree:
    """Return the numbers of the mixture after a step along the loss, if that counts."""
    lr = local.hyper["mixing_lr"]
    moved: Tree = {}
    for name, by in mixing.items():
        way = local.start[name] - local.own["params"][name]
        new = (by - lr * grads[name] * way).clamp(0, 1)
        moved[name] = torch.where(counts, new, by)
    return moved


def _mix(local: Local, mixing: Tree) -> Tree:
    """Return the model received, in the mixed layers moved back to the party's own."""
    own = local.own["params"]
    # exactly one or the other where the number is 0 or 1
    mixed: Tree = {}
    for name, by in mixing.items():
        mixed[name] = torch.lerp(own[name], local.start[name], by)
    return local.start | mixed


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the model as FedAvg does, and keep it."""
    upload, _ = BASE.finish(task, local, work)
    return upload, {"params": local.params, "buffers": local.buffers, **local.carry}
