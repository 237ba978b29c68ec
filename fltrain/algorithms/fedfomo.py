"""Each party moves its model towards those of others that do better on its own examples.

State: models and buffers [1, ...], the common start; server.params and server.buffers [P, ...],
what each party begins its next round with; server.affinity [P, P] float64, how much each has gained
from each; server.rounds [1], those that are over, and server.seed [1], of the draws; parties.params
and parties.buffers [P, ...], each party's model as it trained it last. Sent to one: what it begins
with. While a round is graded, models are [1 + 2 P, ...]: the start, those begun with, those
trained.
"""

from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor

from .. import tree
from ..draws import key, uniform
from ..interface import (
    Algorithm,
    AtLeast,
    AtMost,
    Hyper,
    Info,
    Local,
    Plan,
    Served,
    State,
    Task,
    Work,
)
from ..tree import Tree
from .fedavg import NONE, fedavg

__all__ = ["fedfomo"]

FAMILY = "personal"

BASE = fedavg()
_LEAST = 1e-9  # the least sum that gains are divided by before they are noted

Length = Literal["l2", "l1"]


class Compared(NamedTuple):
    """A party, and those whose trained models it compares with its own: itself first."""

    party: int
    candidates: list[int]


def fedfomo(
    received: Annotated[
        int, "Models of others that a party receives in a round, at most.", AtLeast(1)
    ] = 5,
    epsilon: Annotated[
        float,
        "Chance that one of them is drawn in place of the one that it gained from most.",
        AtLeast(0),
        AtMost(1),
    ] = 0.3,
    epsilon_decay: Annotated[float, "How much lower epsilon is in each round.", AtLeast(0)] = 0.05,
    norm: Annotated[Length, "The norm by which models are apart."] = "l2",
) -> Algorithm:
    """FedFomo. Zhang, Sapra, Fidler, Yeung, Alvarez, ICLR 2021: no global model; each party moves
    towards those models of others that have a lower loss on its own validation part.

    A party of the cohort trains from theta_i and uploads y_i. It then receives trained models of
    `received` others of the cohort: each the one from which it has gained most so far, or, by the
    chance epsilon - epsilon_decay x the rounds that are over, any. On its validation part model n
    gains (L_i(theta_i) - L_i(y_n)) / ||y_n - theta_i||; its own y_i is one of them. Those above 0,
    divided by their sum, are weights: theta_i <- theta_i + sum_n w_n (y_n - theta_i), buffers
    likewise. Where nobody gains, theta_i stays. theta_i is served, and next round begun with. A
    party without validation examples goes on from y_i.

    The validation part is a share of each party's own examples (`niidpart make --val 0.2`; the
    authors: 0.4), which it does not train on; no test part is read. The authors' code takes the sum
    of absolute differences for the norm unless told otherwise (`norm` "l1"); its gains, divided by
    the absolute value of their sum, are added to what is known of each other, as here. Models are
    all held at once, so it is for hundreds of parties.
    """
    return replace(
        BASE,
        name="fedfomo",
        hyper={"received": received, "epsilon": epsilon, "epsilon_decay": epsilon_decay},
        init=init,
        plan=plan,
        begin=begin,
        finish=finish,
        aggregate=aggregate,
        serve=serve,
        traffic=traffic,
        exam=exam,
        grade=grade_by_squares if norm == "l2" else grade_by_sizes,
        graded_by="loss",
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Start all parties alike, who know nothing of each other."""
    n_parties = len(info.n)
    first = {"params": tree.index(models, 0), "buffers": tree.index(buffers, 0)}
    begun = tree.repeat(first, n_parties)
    server = {
        **begun,
        "affinity": torch.zeros(n_parties, n_parties, dtype=torch.float64),
        "rounds": torch.zeros(1, dtype=torch.int64),
        "seed": torch.tensor([info.seed]),
    }
    return State(models, buffers, server, parties=tree.clone(begun))


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Let each party of the cohort train from its own model."""
    begun = {name: state.server[name] for name in ("params", "buffers")}
    each = tree.map(lambda leaf: leaf[cohort.to(leaf.device)], begun)
    return replace(BASE.plan(state, cohort, round, hyper), each=each)


def begin(task: Task, local: Local) -> Local:
    return local._replace(params=local.each["params"], buffers=local.each["buffers"])


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Hand over the trained model as it is: nothing is averaged."""
    return {}, {"params": local.params, "buffers": local.buffers}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper = NONE) -> State:
    """Put behind the start what the parties began with and what they trained, for the exam."""
    begun, trained = state.server, state.parties

    def append(*parts: Tensor) -> Tensor:
        return torch.cat(parts)

    return replace(
        state,
        models=tree.map(append, state.models, begun["params"], trained["params"]),
        buffers=tree.map(append, state.buffers, begun["buffers"], trained["buffers"]),
    )


def exam(state: State, plan: Plan, hyper: Hyper) -> tuple[Tensor, Tensor]:
    """Examine, of each party, what it began with, what it trained, and what it receives."""
    party, model = [], []
    n_parties = len(state.server["affinity"])
    for choice in choose_others(state, plan, hyper):
        party += [choice.party] * (1 + len(choice.candidates))
        model += [1 + choice.party, *(1 + n_parties + n for n in choice.candidates)]
    return torch.tensor(party), torch.tensor(model)


def choose_others(state: State, plan: Plan, hyper: Hyper) -> list[Compared]:
    """Return whose models each party of the cohort compares."""
    cohort: list[int] = plan.party.tolist()
    affinity = state.server["affinity"].cpu()
    over, seed = int(state.server["rounds"]), int(state.server["seed"])
    chance = hyper["epsilon"] - hyper["epsilon_decay"] * over
    choices = []
    for party in cohort:
        others = [other for other in cohort if other != party]
        draws = uniform(key(seed, "fedfomo", over, party), 3 * len(others), torch.device("cpu"))
        ties, order, explores = draws.view(3, -1).tolist()
        gains = affinity[party, others].tolist()
        places = range(len(others))
        best = sorted(places, key=lambda place: (-gains[place], ties[place]))
        drawn = sorted(places, key=lambda place: order[place])
        chosen: list[int] = []
        for number in range(min(hyper["received"], len(others))):
            ranked = drawn if explores[number] < chance else best
            chosen.append(next(place for place in ranked if place not in chosen))
        choices.append(Compared(party, [party, *(others[place] for place in chosen)]))
    return choices


def grade_by_squares(state: State, plan: Plan, losses: Tensor, hyper: Hyper) -> State:
    return _grade(state, plan, losses, hyper, order=2)


def grade_by_sizes(state: State, plan: Plan, losses: Tensor, hyper: Hyper) -> State:
    return _grade(state, plan, losses, hyper, order=1)


def _grade(state: State, plan: Plan, losses: Tensor, hyper: Hyper, order: int) -> State:
    """Move the models of the cohort by the losses, and leave the start alone again."""
    server, trained = state.server, state.parties
    affinity = server["affinity"].clone()
    moved = {name: tree.clone(server[name]) for name in ("params", "buffers")}
    choices = choose_others(state, plan, hyper)
    # no view: a cohort in which nobody holds examples has no rows to tell their length by
    per_party = torch.split(losses, [1 + len(choice.candidates) for choice in choices])
    for choice, its_losses in zip(choices, per_party, strict=True):
        party, rows = choice
        if its_losses.isnan().any():
            weights = torch.zeros(len(rows), dtype=torch.float64)
            weights[0] = 1  # nothing is known but its own model
        else:
            apart = _measure_distances(server["params"], trained["params"], choice, order)
            weights, gains = _weigh(its_losses, apart)
            affinity[party, rows] += gains.to(affinity.device)
        for name, values in moved.items():
            _move(values, trained[name], choice, weights)
    return replace(
        state,
        models=tree.map(lambda leaf: leaf[:1].clone(), state.models),
        buffers=tree.map(lambda leaf: leaf[:1].clone(), state.buffers),
        server=server | moved | {"affinity": affinity, "rounds": server["rounds"] + 1},
    )


def _measure_distances(begun: Tree, trained: Tree, choice: Compared, order: int) -> Tensor:
    """Return how far each candidate is from what the party began with, float64."""
    party, rows = choice
    total = torch.zeros(len(rows), dtype=torch.float64)
    for name, leaf in begun.items():
        way = (trained[name][rows].double() - leaf[party].double()).flatten(1)
        total += way.abs().pow(order).sum(1).cpu()
    return total ** (1 / order)


def _weigh(losses: Tensor, apart: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights of the candidates, and what is noted of them.

    losses: of the model that the party began with, then of the candidates. One that is no way off
    gains nothing.
    """
    gains = torch.where(apart > 0, (losses[0] - losses[1:]) / apart.clamp(min=1e-300), 0.0)
    above = gains.clamp(min=0)
    total = above.sum()
    weights = above / total if total > 0 else above
    return weights, gains / gains.sum().abs().clamp(min=_LEAST)


def _move(values: Tree, trained: Tree, choice: Compared, weights: Tensor) -> None:
    """Move a party's row of values [P, ...] towards its candidates."""
    party, rows = choice
    for name, leaf in values.items():
        if leaf.is_floating_point():
            begun = leaf[party].double()
            ways = trained[name][rows].double() - begun
            shares = weights.to(leaf.device).view(-1, *[1] * begun.dim())
            leaf[party] = (begun + (shares * ways).sum(0)).to(leaf.dtype)
        else:
            leaf[party] = trained[name][party]


def serve(state: State, hyper: Hyper = NONE) -> Served:
    """Serve each party its own."""
    server = state.server
    n_parties = len(server["affinity"])
    return Served(server["params"], server["buffers"], which=torch.arange(n_parties))


def traffic(state: State, plan: Plan, task: Task, hyper: Hyper) -> tuple[Tensor, Tensor]:
    """Count the models of others down, and one up with what is noted of each candidate, 4 bytes."""
    n_received = min(hyper["received"], len(plan.party) - 1)
    n_bytes = tree.nbytes(tree.index(state.models, 0)) + tree.nbytes(tree.index(state.buffers, 0))
    down = torch.full_like(plan.party, n_received * n_bytes)
    up = torch.full_like(plan.party, n_bytes + 4 * (n_received + 1))
    return down, up
