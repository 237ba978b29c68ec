"""Global models are cloned and deleted, so that parties of one kind gather around one of their own."""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from torch import Tensor

from niidpart.errors import UsageError

from .. import tree
from ..interface import Algorithm, Info, Local, Plan, Served, State, Task, Work
from ..tree import Tree
from ._quantise import quantised, scales
from .fedavg import fedavg

__all__ = ["fedcd"]

_LEAST = 1e-3  # accuracy that a clone is taken to have at least
_ROUNDING = (
    1e-12  # scores this close are equal: a third of 1 is not rounded to the mean of three of them
)
_TINY = (
    1e-300  # weight of a score 0: it counts only where no party of the cohort gives the model any
)


def fedcd(
    milestones: Annotated[
        tuple[int, ...],
        "Rounds, from 1, after which every model is cloned, such as 5,15; '' for none.",
    ] = (5, 15, 25, 30),
    bits: Annotated[
        int,
        "Bits that each number of a model is rounded to when it is sent, 1 to 16; 32 for no rounding.",
    ] = 8,
    window: Annotated[
        int, "Exams of a model that its score is taken from, the last ones; at least 1."
    ] = 3,
    rule: Annotated[
        Literal["mean", "max"],
        "A party deletes models that score more than sigma below its mean, or below its best (max).",
    ] = "mean",
    two_models_after: Annotated[
        int,
        "Round after which, of two models left, the lower one can go by two_models_score; at least 0.",
    ] = 20,
    two_models_score: Annotated[
        float, "Of two models left the lower one goes if its score is at most this, in 0..0.5."
    ] = 0.3,
) -> Algorithm:
    """FedCD. Kopparapu, Lin, Zhao, 2020, Algorithm 1: global models that parties score, clone and delete; each party uses its best.

    A party of the cohort trains all its active models. Model m becomes sum_i c_im y_im / sum_i c_im, c_im the score that party i gives it: the
    model's mean accuracy on the party's validation part over its last `window` exams, divided by the sum over its active models. After the
    rounds `milestones` (from 1) all parties validate, and every model is cloned, M to 2 M: number M + m is the clone of m, and a model that all
    have deleted stays as a row that nobody trains. Rounded are trained weights and biases of convolutions and linear layers.
    rule, of deletion, with sigma the sample standard deviation of a party's scores: "mean", those more than sigma below their mean (two survive,
    as the text promises); "max", those more than sigma below the best (as printed: of two models the worse one always goes).

    Not as printed: Equation 1 divides by a sum over models, here over parties; a clone gets 1 - s of its parent, s an accuracy, until it is
    examined (1 - c would be 0 for the first); "at least sigma below" would delete all of equal models, here it is "more than". The text's "some
    randomization" of scores has no number and is left out, and so are faults of the authors' code (a party counted twice, validation images that
    are trained on). As there, the mean itself is not rounded; its bytes count as if it were, and those of exams are not counted, as in the paper.
    """
    _check(milestones, bits, window, two_models_after, two_models_score)
    base = fedavg()

    def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Tree) -> State:
        """scores, active, guess [P, M]; history [P, M, window] accuracies, newest last, -1 for none. guess: s of what was never examined."""
        P = len(info.n)
        guess, history = (
            torch.ones(P, 1, dtype=torch.float64),
            -torch.ones(P, 1, window, dtype=torch.float64),
        )
        server = {
            "active": guess > 0,
            "guess": guess,
            "history": history,
            "rounds": torch.zeros(1, dtype=torch.int64),
        }
        return State(models, buffers, _scored(server))

    def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
        sent = quantised(local.params, task.kinds, bits, local.key) if bits < 32 else local.params
        return base.finish(task, local._replace(params=sent), work)

    def exam(state: State, plan: Plan, hyper: Tree) -> tuple[Tensor, Tensor]:
        """The jobs that ran; at a milestone every active model of every party."""
        if _round(state) not in milestones:
            return plan.party, plan.model
        party, model = torch.nonzero(state.server["active"].cpu(), as_tuple=True)
        return party, model

    def grade(state: State, plan: Plan, accuracy: Tensor, hyper: Tree) -> State:
        """New accuracies and scores, then deletion at the parties that were examined, then the clones."""
        server, round = tree.map(Tensor.cpu, state.server), _round(state)
        party, model = (asked[~accuracy.isnan()] for asked in exam(state, plan, hyper))
        server = _noted(server, party, model, accuracy[~accuracy.isnan()])
        server = _deleted(server, party, far_below(server["scores"], server["active"], rule))
        if round > two_models_after:
            server = _deleted(
                server, party, second_of_two(server["scores"], server["active"], two_models_score)
            )
        server = server | {"rounds": server["rounds"] + 1}
        return _cloned(state, server) if round in milestones else replace(state, server=server)

    def traffic(state: State, plan: Plan, task: Task, hyper: Tree) -> tuple[Tensor, Tensor]:
        moved = torch.full_like(plan.party, _bytes(state, task.kinds, bits))
        return moved, moved + 4

    return replace(
        base,
        name="fedcd",
        init=init,
        plan=plan,
        finish=finish,
        serve=serve,
        traffic=traffic,
        exam=exam,
        grade=grade,
    )


def plan(state: State, cohort: Tensor, round: int, hyper: Tree) -> Plan:
    """A job for each active model of each party of the cohort, weighted by its score."""
    row, model = torch.nonzero(state.server["active"].cpu()[cohort], as_tuple=True)
    party = cohort[row]
    return Plan(party, model, state.server["scores"].cpu()[party, model].clamp(min=_TINY))


def serve(state: State, hyper: Tree) -> Served:
    """Each party's model of the highest score, the oldest of equals."""
    best = _best(state.server["scores"], state.server["active"])
    return Served(state.models, state.buffers, torch.nonzero(best)[:, 1].cpu())


def far_below(scores: Tensor, active: Tensor, rule: str) -> Tensor:
    """[P, M] bool: the active models that the rule deletes, given scores [P, M], 0 where not active. Never the best one, the oldest of equals."""
    n = active.sum(1, keepdim=True)
    mean = scores.sum(1, keepdim=True) / n
    sigma = ((active * (scores - mean) ** 2).sum(1, keepdim=True) / (n - 1).clamp(min=1)).sqrt()
    top = mean if rule == "mean" else scores.amax(1, keepdim=True)
    return active & ~_best(scores, active) & (top - scores > sigma + _ROUNDING)


def second_of_two(scores: Tensor, active: Tensor, highest: float) -> Tensor:
    """[P, M] bool: the lower of two active models, where its score is at most `highest`."""
    return (
        active
        & ~_best(scores, active)
        & (active.sum(1, keepdim=True) == 2)
        & (scores <= highest + _ROUNDING)
    )


def strengths(server: Tree) -> Tensor:
    """s [P, M]: the mean of the accuracies in the history, the guess where there is none."""
    seen = server["history"] >= 0
    mean = (server["history"] * seen).sum(2) / seen.sum(2).clamp(min=1)
    return torch.where(seen.any(2), mean, server["guess"])


def _scored(server: Tree) -> Tree:
    """Scores anew: s over its sum over the party's active models, 0 for the others; all alike where every s is 0."""
    s, active = strengths(server) * server["active"], server["active"].double()
    total = s.sum(1, keepdim=True)
    return server | {
        "scores": torch.where(
            total > 0, s / total.clamp(min=_TINY), active / active.sum(1, keepdim=True)
        )
    }


def _noted(server: Tree, party: Tensor, model: Tensor, accuracy: Tensor) -> Tree:
    """The accuracies [Q] of (party, model) at the end of their histories, and the scores that follow."""
    history = server["history"].clone()
    history[party, model] = torch.cat([history[party, model, 1:], accuracy.unsqueeze(1)], dim=1)
    return _scored(server | {"history": history})


def _deleted(server: Tree, party: Tensor, lost: Tensor) -> Tree:
    """Without the models `lost` [P, M] at the parties that were examined, and the scores of what is left."""
    examined = torch.zeros(len(lost), 1, dtype=torch.bool)
    examined[party] = True
    return _scored(server | {"active": server["active"] & ~(examined & lost)})


def _cloned(state: State, server: Tree) -> State:
    """Twice the models. A clone is active where its parent is, has no history, and is taken to be good where its parent is not."""
    clones = {
        "active": server["active"],
        "guess": (1 - strengths(server)).clamp(min=_LEAST),
        "history": torch.full_like(server["history"], -1.0),
    }
    server = _scored(
        server | {k: torch.cat([server[k], clone], dim=1) for k, clone in clones.items()}
    )
    models, buffers = (
        tree.map(lambda leaf: torch.cat([leaf, leaf]), part)
        for part in (state.models, state.buffers)
    )
    return replace(state, models=models, buffers=buffers, server=server)


def _best(scores: Tensor, active: Tensor) -> Tensor:
    """[P, M] bool: one active model of each party, that of the highest score, the oldest of equals."""
    ranked = scores.masked_fill(~active, -1.0)
    highest = ranked == ranked.amax(1, keepdim=True)
    return highest & (highest.cumsum(1) == 1)


def _round(state: State) -> int:
    """The round at hand, from 1: `rounds` counts those that are over."""
    return int(state.server["rounds"]) + 1


def _bytes(state: State, kinds: dict[str, str], bits: int) -> int:
    """Of one model: `bits` for each number that is rounded and 4 bytes for each scale; everything else as it is."""
    scale = scales(state.models, kinds) if bits < 32 else {}
    rest = {name: w[0] for name, w in state.models.items() if name not in scale}
    rounded = sum(-(-state.models[name][0].numel() * bits // 8) for name in scale)
    return (
        rounded
        + 4 * len(set(scale.values()))
        + tree.nbytes(rest)
        + tree.nbytes(tree.index(state.buffers, 0))
    )


def _check(
    milestones: tuple[int, ...],
    bits: int,
    window: int,
    two_models_after: int,
    two_models_score: float,
) -> None:
    if any(m < 1 for m in milestones) or len(set(milestones)) < len(milestones):
        raise UsageError(f"milestones are {milestones}; they must be different rounds, at least 1")
    if not (1 <= bits <= 16 or bits == 32):
        raise UsageError(f"bits is {bits}; it must be in 1..16, or 32 for no rounding")
    if window < 1:
        raise UsageError(f"window is {window}; it must be at least 1")
    if two_models_after < 0:
        raise UsageError(f"two_models_after is {two_models_after}; it must be at least 0")
    if not 0 <= two_models_score <= 0.5:
        raise UsageError(
            f"two_models_score is {two_models_score}; it must be in 0..0.5, the lower of two scores is no higher"
        )
