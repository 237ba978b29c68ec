"""FedProto: models stay, prototypes travel; SOLO at lam 0 and in the first round; the term and the means."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fltrain import UsageError
from fltrain.algorithms import fedproto, solo
from fltrain.interface import Batch, Local
from fltrain.models import Staged, create
from fltrain.tasks.model_task import ModelTask

from ._replay import FULL, largest_gap, list_parties, make_sgd, take_steps


def test_lam_0_is_solo_bit_for_bit(table, table_split, train, same_state):
    a, b = (train(table_split, table, algorithm=f, momentum=0.9) for f in (fedproto(lam=0), solo()))
    assert same_state(a.state, b.state)
    assert a.history == b.history


def test_without_prototypes_the_first_round_is_solos(table, table_split, train, same):
    a, b = (
        train(table_split, table, algorithm=f, rounds=1, momentum=0.9).state
        for f in (fedproto(lam=5.0), solo())
    )
    assert same(a.parties, b.parties)
    assert a.server["known"].tolist() == [1, 1, 1]


def test_prototypes_travel_and_no_models(table, table_split, train, double):
    first = train(table_split, table, model=double(), algorithm=fedproto(), fraction=0.8).history[0]
    # 3 classes of 8 features, and which there are, in float64, for 4 parties
    assert first["bytes_up"] == first["bytes_down"] == 4 * 8 * (3 * 8 + 3)


# Features of one length from networks of two shapes, the smaller one with batch norm.
UNLIKE = """
import torch
from torch import nn

class Float64(nn.Sequential):
    def __init__(self, *layers):
        super().__init__(*layers)
        self.double()

    def forward(self, x):
        return super().forward(x.double())

def wide(shape, n_classes):
    return Float64(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, n_classes))

def deep(shape, n_classes):
    first = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3), nn.Linear(3, 8))
    return Float64(first, nn.Tanh(), nn.Linear(8, n_classes))
"""


@pytest.mark.parametrize(
    ("weights", "shapes"), [("uniform", 1), ("examples", 1), ("uniform", 2), ("examples", 2)]
)
def test_rounds_are_those_written_out_by_torch(
    weights, shapes, table, dealt, train, double, certify, tmp_path
):
    """Unequal parties, one of which lacks a class; models of one shape and of two; momentum, weight decay; prototypes as the authors' code makes them."""
    owner = [0 if i % 4 or table.labels[i] == 1 else 1 for i in range(90)]
    split = dealt(table, owner)
    algorithm = fedproto(lam=0.7, prototype_weights=weights)
    model, models = double(), [double(), double()]
    if shapes == 2:
        file = tmp_path / "unlike.py"
        file.write_text(UNLIKE)
        names = [f"{file}:{name}" for name in ("wide", "deep")]
        model, models = "+".join(names), [create(name, (6,), 3, seed=0) for name in names]
    done = train(split, table, model=model, algorithm=algorithm, local_epochs=3, **FULL)
    parties, prototypes = list_parties(split, table), {}
    assert {len(party.y.unique()) for party in parties} == {2, 3}
    for _ in range(FULL["rounds"]):
        sent = {0: [], 1: [], 2: []}
        for party, model in zip(parties, models, strict=True):
            optimizer, seen = make_sgd(model.parameters()), []

            def loss(party=party, model=model, seen=seen, prototypes=prototypes):
                z = model[1](model[0](party.x))
                seen.append(z.detach())
                target = z.detach().clone()
                for i, label in enumerate(party.y.tolist()):
                    if label in prototypes:
                        target[i] = prototypes[label]
                return F.cross_entropy(model[2](z), party.y) + 0.7 * F.mse_loss(z, target)

            take_steps(optimizer, loss, epochs=3)
            for label in party.y.unique().tolist():
                rows = seen[-1][party.y == label]
                sent[label].append((rows.mean(0), 1 if weights == "uniform" else len(rows)))
        prototypes = {
            label: sum(z * w for z, w in means) / sum(w for _, w in means)
            for label, means in sent.items()
        }
    for label, expected in prototypes.items():
        found = done.state.server["prototypes"][label]
        certify("fedproto", float((found - expected).abs().max()))
    for party, model in enumerate(models):
        kept = done.model(party).state_dict()
        certify("fedproto", largest_gap(kept, model.state_dict()))


def test_prototypes_are_of_the_last_epochs_features(table, table_split, train, double):
    """Counts of a party's prototypes are its examples, in batches too, whatever the epochs."""
    counts = []
    algorithm = fedproto()

    def finish(task, local, work):
        counts.append((int(local.carry["counts"].sum()), int(work.n)))
        return algorithm.finish(task, local, work)

    for engine in ("looped", "stacked"):
        counts.clear()
        watched = algorithm if engine == "stacked" else replace(algorithm, finish=finish)
        how = {"local_epochs": 3, "batch_size": 7, "engine": engine, "rounds": 2}
        done = train(table_split, table, model=double(), algorithm=watched, **how)
        assert all(counted == n for counted, n in counts)
        assert len(counts) == (10 if engine == "looped" else 0)
        assert done.state.server["known"].tolist() == [1, 1, 1]


def test_a_class_that_nobody_of_a_round_holds_keeps_its_prototype(table, train, dealt, double):
    """One party a round of two, each with classes of its own."""
    owner = [0 if label == 1 else 1 for label in table.labels]
    split = dealt(table, owner)
    how = {"model": double(), "algorithm": fedproto(), "cohort_size": 1, "seed": 1}
    rounds = [train(split, table, rounds=r, **how).state.server for r in (1, 2, 3, 4)]
    assert rounds[0]["known"].tolist() in ([0, 1, 0], [1, 0, 1])
    assert rounds[3]["known"].tolist() == [1, 1, 1]
    for before, after in itertools.pairwise(rounds):
        moved = (before["prototypes"] != after["prototypes"]).any(1).tolist()
        assert moved in ([False, True, False], [True, False, True])


def test_one_step_by_hand():
    """Features z = w x = x for w = 1, x = 2, class 0 with prototype 5, lam 0.5, last layer 0: cross entropy log 2.

    Distance (2 - 5)^2 = 9; loss 0.693147180560 + 4.5; gradient of w: 0.5 x 2 x (2 - 5) x 2 = -6.
    """
    module = Staged(body=nn.Linear(1, 1, bias=False), out=nn.Linear(1, 2, bias=False)).double()
    params = {"body.weight": torch.ones(1, 1), "out.weight": torch.zeros(2, 1)}
    params = {name: w.double() for name, w in params.items()}
    shared = {"prototypes": torch.tensor([[5.0], [0.0]]), "known": torch.tensor([1.0, 0.0])}
    shared = {name: value.double() for name, value in shared.items()}
    own = {"params": params, "buffers": {}}
    local = Local(params, {}, params, shared, {}, own, {}, {"lam": 0.5}, 0)
    algorithm, task = fedproto(lam=0.5), ModelTask(module)
    x = torch.tensor([[2.0]], dtype=torch.float64)
    local = algorithm.begin(task, local)
    step = algorithm.direction(task, local, Batch(x, torch.tensor([0]), None, 0, 0))
    assert float(step.loss) == pytest.approx(0.693147180560 + 4.5, abs=1e-12)
    assert float(step.grad["body.weight"]) == pytest.approx(-6.0, abs=1e-12)
    assert step.carry["sums"].tolist() == [[2.0], [0.0]]
    without = algorithm.direction(task, local, Batch(x, torch.tensor([1]), None, 0, 0))
    assert float(without.loss) == pytest.approx(0.693147180560, abs=1e-12)


def test_a_model_without_features_is_refused(table, table_split, train):
    with pytest.raises(UsageError, match="FedProto reads features"):
        train(table_split, table, model="linear", algorithm="fedproto")
