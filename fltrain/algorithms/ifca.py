"""Several global models, of which each party trains the one that fits it best.

State: models and buffers [M, ...], one for each cluster; parties.cluster [P] int64, the one that a
party trained last, 0 before that; with `dealt_rounds` server.dealt [P], the one that each party
trains in the first rounds. Broadcast: shared.models, shared.buffers, all clusters; each.dealt, -1
where the party chooses. Carried: cluster. Uploaded: the model in the place of its cluster,
[M, ...], the others 0, and parts [M].
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from .. import tree
from ..draws import key, order
from ..interface import (
    Algorithm,
    AtLeast,
    Hyper,
    Info,
    Local,
    Plan,
    Served,
    State,
    Task,
    Work,
)
from ..named_layers import find_layers, has_head
from ..tree import Tree
from ._weights import PLANS, Weights, weigh_alike
from .fedavg import NONE, fedavg, weigh

__all__ = ["ifca"]

FAMILY = "clustered"

BASE = fedavg()
ALL = "all"


def ifca(
    n_models: Annotated[int, "How many models there are; 1 is FedAvg.", AtLeast(1)] = 2,
    weights: Weights = "examples",
    redrawn: Annotated[
        str,
        "Layers that all models but the first begin anew: all, head (what takes the features), a "
        "layer's name, or a kind (conv, linear, norm, bias); several with a + between.",
    ] = ALL,
    dealt_rounds: Annotated[
        int, "Rounds before parties choose, in which each trains the model dealt to it.", AtLeast(0)
    ] = 0,
) -> Algorithm:
    """IFCA. Ghosh, Chung, Yin, Ramchandran, NeurIPS 2020: each party receives all models, and
    trains and sends the one with the lowest loss on its own training examples.

    This is its model averaging: a model becomes the mean of those that came back for it, by
    examples, as in the authors' code for FEMNIST, and stays where none did. Losses are over all
    examples of the party, in eval mode; of equal ones the first counts. A party is served the model
    that it trained last; one that has not trained yet the first. A new party takes the one that is
    best on its validation part.

    The first model begins as the common start, and the others as that with the entries of each
    tensor in another order, by the seed: as likely a draw, where they are drawn alike. Of weights
    that were trained before (`--init-from`) it undoes what they had learned, so that parties choose
    the first, unless `redrawn` names the layers that may begin anew. The authors' code for FEMNIST
    goes on from a model of FedAvg whose last layer it draws anew, for the first model too, and
    before its rounds trains each model for 20 on parties dealt to it at random: `redrawn="head"`,
    `dealt_rounds=20`; those are rounds like others here. Several tries are runs with other seeds
    (`--init-seed`). Weights that all clusters share are not here.

    Says of its state (`--internals`): `cluster` of each party, and `parties_in_largest`, how many
    have the one that most have.
    """
    if n_models == 1:
        return replace(BASE, name="ifca", hyper={"n_models": 1}, plan=PLANS[weights])
    return replace(
        BASE,
        name="ifca",
        hyper={"n_models": n_models, "redrawn": redrawn, "dealt_rounds": dealt_rounds},
        init=init,
        plan=plan if weights == "examples" else plan_uniformly,
        begin=begin_dealt if dealt_rounds else begin,
        finish=finish,
        aggregate=aggregate,
        serve=serve,
        serve_new=serve_new,
        traffic=traffic,
        describe=describe,
        features=has_head(redrawn),
    )


def init(task: Task, info: Info, models: Tree, buffers: Tree, hyper: Hyper) -> State:
    """Start all models but the first as that with entries of its layers in another order."""
    n_models = hyper["n_models"]
    words = hyper["redrawn"]
    redrawn = models.keys() if words == ALL else find_layers(task, words).params
    shuffled = tree.repeat(tree.index(models, 0), n_models)
    for name in models.keys() & redrawn:
        first = models[name][0]
        others = [_shuffle(first, key(info.seed, "ifca", m, name)) for m in range(1, n_models)]
        shuffled[name] = torch.stack([first, *others])
    n_parties = len(info.n)
    device = tree.leaves(models)[0].device
    dealt = order(key(info.seed, "ifca", "dealt"), 0, n_parties, device) % n_models
    return State(
        models=shuffled,
        buffers=tree.repeat(tree.index(buffers, 0), n_models),
        server={"dealt": dealt} if hyper["dealt_rounds"] else {},
        parties={"cluster": torch.zeros(n_parties, dtype=torch.int64, device=device)},
    )


def _shuffle(values: Tensor, key: int) -> Tensor:
    places = order(key, 0, values.numel(), values.device)
    return values.flatten()[places].view(values.shape)


def plan(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    """Send all models; which one a party trains it says itself, or in the first rounds the deal."""
    sent = {"models": state.models, "buffers": state.buffers}
    chosen = replace(BASE.plan(state, cohort, round, hyper), shared=sent)
    if "dealt" not in state.server:
        return chosen
    dealt = state.server["dealt"][cohort.to(state.server["dealt"].device)]
    is_dealt = round <= hyper["dealt_rounds"]
    return replace(chosen, each={"dealt": dealt if is_dealt else torch.full_like(dealt, -1)})


def plan_uniformly(state: State, cohort: Tensor, round: int, hyper: Hyper = NONE) -> Plan:
    return weigh_alike(plan(state, cohort, round, hyper))


def begin(task: Task, local: Local) -> Local:
    """Take the model of the lowest loss."""
    return _take(local, _find_best(task, local))


def begin_dealt(task: Task, local: Local) -> Local:
    """Take the model that was dealt, or that of the lowest loss where none is any more."""
    dealt = local.each["dealt"]
    return _take(local, torch.where(dealt < 0, _find_best(task, local), dealt))


def _find_best(task: Task, local: Local) -> Tensor:
    models, buffers = local.shared["models"], local.shared["buffers"]
    losses = []
    for m in range(len(tree.leaves(models)[0])):
        losses.append(task.full_loss(local, tree.index(models, m), tree.index(buffers, m)))
    return torch.stack(losses).argmin()


def _take(local: Local, best: Tensor) -> Local:
    """Begin from one of the models received, by its number."""

    def take(values: Tensor) -> Tensor:
        return values.index_select(0, best.reshape(1)).squeeze(0)

    return local._replace(
        params=tree.map(take, local.shared["models"]),
        buffers=tree.map(take, local.shared["buffers"]),
        carry={"cluster": best},
    )


def finish(task: Task, local: Local, work: Work) -> tuple[Tree, Tree]:
    """Upload the model in the place of its cluster; keep which one that is."""
    best = local.carry["cluster"]
    n_models = len(tree.leaves(local.shared["models"])[0])
    is_best = torch.arange(n_models, device=best.device) == best

    def put(term: Tensor) -> Tensor:
        place = is_best.view(-1, *[1] * term.dim())
        return torch.where(place, term.unsqueeze(0), 0)

    def weigh_and_put(values: Tensor) -> Tensor:
        return put(work.share * values.double())

    upload = {
        "models": tree.map(put, weigh(local.params, work)),
        # whole numbers too: which party is the lowest of a cluster is not known here
        "buffers": tree.map(weigh_and_put, local.buffers),
        "parts": is_best * torch.as_tensor(work.share, dtype=torch.float64),
    }
    return upload, {"cluster": best}


def aggregate(state: State, plan: Plan, total: Tree, hyper: Hyper) -> State:
    """Take the mean of each model over those who chose it; one that nobody chose stays."""
    parts = total["parts"][0]  # [M]
    models = tree.map(_average_chosen(parts), state.models, total["models"])
    buffers = tree.map(_average_chosen(parts), state.buffers, total["buffers"])
    return replace(state, models=models, buffers=buffers)


def _average_chosen(parts: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Return what makes the next values [M, ...] of the old ones and the sums [1, M, ...].

    Whole numbers, such as counts of batches, become the nearest to their mean.
    """

    def average(old: Tensor, total: Tensor) -> Tensor:
        part = parts.view(-1, *[1] * (old.dim() - 1))
        mean = total[0] / torch.where(part > 0, part, 1)
        if not old.is_floating_point():
            mean = mean.round()
        return torch.where(part > 0, mean.to(old.dtype), old)

    return average


def serve(state: State, hyper: Hyper = NONE) -> Served:
    """Serve each party the model that it trained last."""
    return Served(state.models, state.buffers, which=state.parties["cluster"].cpu())


def serve_new(state: State, hyper: Hyper = NONE) -> Served:
    """Offer a party that never trained all models: it takes its best."""
    n_models = len(tree.leaves(state.models)[0])
    return Served(state.models, state.buffers, which=torch.arange(n_models))


def traffic(state: State, plan: Plan, task: Task, hyper: Hyper) -> tuple[Tensor, Tensor]:
    """Count all models down, and one up with the number of its cluster, 4 bytes."""
    all_models = tree.nbytes(state.models) + tree.nbytes(state.buffers)
    one_model = all_models // hyper["n_models"]
    return torch.full_like(plan.party, all_models), torch.full_like(plan.party, one_model + 4)


def describe(state: State, hyper: Hyper) -> Tree:
    """Say which cluster each party is in."""
    cluster = state.parties["cluster"]
    sizes = torch.bincount(cluster, minlength=hyper["n_models"])
    return {"cluster": cluster, "parties_in_largest": sizes.max()}
