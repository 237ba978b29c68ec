"""Losses by a party's counts of classes: FedLC, FedRS, the balanced softmax."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fltrain
from fltrain import UsageError, tree
from fltrain.algorithms import balanced_softmax, build, fedavg, fedlc, fedrs
from fltrain.interface import Batch, Info, Local
from fltrain.tasks.model_task import ModelTask

from ._replay import FULL, average, largest_gap, list_parties, make_sgd, take_steps


def margins(z, counts, tau=0.7):
    return z - tau * counts**-0.25


def restricted(z, counts, alpha=0.4):
    return z * torch.where(counts > 0, torch.ones_like(counts), alpha)


def by_share(z, counts, alpha=0.4):
    return z * (counts / counts.max() * (1 - alpha) + alpha)


def prior(z, counts, gamma=1.5):
    return z + gamma * counts.log()


# An algorithm, and what its loss reads of logits z [B, K] at a party with these counts [K].
READ = {
    "fedlc": (lambda: fedlc(tau=0.7), margins),
    "fedrs": (lambda: fedrs(alpha=0.4), restricted),
    "fedrs by share": (lambda: fedrs(alpha=0.4, restriction="share"), by_share),
    "balanced-softmax": (lambda: balanced_softmax(gamma=1.5), prior),
}
SWITCHED_OFF = {
    "fedlc": lambda: fedlc(tau=0),
    "fedrs": lambda: fedrs(alpha=1),
    "balanced-softmax": lambda: balanced_softmax(gamma=0),
}


@pytest.mark.parametrize("name", SWITCHED_OFF)
def test_switched_off_it_is_fedavg_bit_for_bit(name, table, table_split, train, same_state):
    a, b = (
        train(table_split, table, algorithm=f, momentum=0.9)
        for f in (SWITCHED_OFF[name](), fedavg())
    )
    assert same_state(a.state, b.state)
    assert a.history == b.history


@pytest.mark.parametrize("name", READ)
def test_rounds_are_those_written_out_by_torch(name, table, dealt, train, double, certify):
    """Unequal parties, one of which lacks a class; momentum and weight decay."""
    owner = [0 if i % 4 or table.labels[i] == 1 else 1 for i in range(90)]
    split = dealt(table, owner)
    algorithm, read = READ[name][0](), READ[name][1]
    done = train(split, table, model=double(), algorithm=algorithm, local_epochs=3, **FULL)
    parties = list_parties(split, table)
    counts = [torch.bincount(party.y, minlength=3).double() for party in parties]
    assert (counts[1] > 0).tolist() == [True, False, True]
    model = dict(double().state_dict())
    for _ in range(FULL["rounds"]):
        states = []
        for party, of_class in zip(parties, counts, strict=True):
            own = double()
            own.load_state_dict(model)

            def loss(own=own, party=party, of_class=of_class):
                return F.cross_entropy(read(own(party.x), of_class), party.y)

            take_steps(make_sgd(own.parameters()), loss, epochs=3)
            states.append(own.state_dict())
        model = average(states, parties, list(model))
    certify(name.partition(" ")[0], largest_gap(tree.index(done.state.models, 0), model))
    assert torch.equal(done.state.parties["counts"], torch.stack(counts).long())


def make_job(algorithm, counts, weights):
    """A job of the party with these counts, logits being weights x 1."""
    module = nn.Linear(1, len(weights), bias=False).double()
    task = ModelTask(module)
    params = {"weight": torch.tensor(weights, dtype=torch.float64).unsqueeze(1)}
    counts = torch.tensor([counts])
    beta = torch.ones(1, dtype=torch.float64)
    info = Info(counts.sum(1), counts, beta, shape=(1,), seed=0, lr=0.1)
    models = {"weight": params["weight"].unsqueeze(0)}
    state = algorithm.init(task, info, models, {}, algorithm.hyper)
    own = tree.index(state.parties, 0)
    local = Local(params, {}, params, {}, {}, own, {}, algorithm.hyper, 0)
    return task, algorithm.begin(task, local)


def batch_of(*labels):
    x = torch.ones(len(labels), 1, dtype=torch.float64)
    return Batch(x, torch.tensor(labels), None, epoch=0, step=0)


def test_one_step_of_fedlc_by_hand():
    """Counts 1, 16; tau 1: margins 1 and 16^(-1/4) = 1/2. Logits (0, 0), class 0: z - m = (-1, -1/2).

    p_0 = 1 / (1 + e^(1/2)) = 0.377540668798; loss -log p_0 = 0.974076984180; gradient (p_0 - 1, p_1) = (-0.622459331202, 0.622459331202).
    """
    task, local = make_job(fedlc(), [1, 16], [0.0, 0.0])
    step = fedlc().direction(task, local, batch_of(0))
    assert float(step.loss) == pytest.approx(0.974076984180, abs=1e-12)
    assert step.grad["weight"].flatten().tolist() == pytest.approx(
        [-0.622459331202, 0.622459331202], abs=1e-12
    )


def test_one_step_of_fedrs_by_hand():
    """Counts 3, 0; alpha 1/2. Logits (1, 2), class 0: scaled (1, 1), p = (1/2, 1/2), loss log 2; gradient (-1/2, 1/2 x alpha) = (-0.5, 0.25)."""
    task, local = make_job(fedrs(), [3, 0], [1.0, 2.0])
    step = fedrs().direction(task, local, batch_of(0))
    assert float(step.loss) == pytest.approx(math.log(2), abs=1e-12)
    assert step.grad["weight"].flatten().tolist() == pytest.approx([-0.5, 0.25], abs=1e-12)


def test_one_step_of_the_balanced_softmax_by_hand():
    """Counts 3, 1. Logits (0, 0), class 1: z + log n = (log 3, 0), p = (3/4, 1/4), loss log 4; gradient (3/4, -3/4)."""
    task, local = make_job(balanced_softmax(), [3, 1], [0.0, 0.0])
    step = balanced_softmax().direction(task, local, batch_of(1))
    assert float(step.loss) == pytest.approx(math.log(4), abs=1e-12)
    assert step.grad["weight"].flatten().tolist() == pytest.approx([0.75, -0.75], abs=1e-12)


@pytest.mark.parametrize("name", ["fedlc", "balanced-softmax"])
def test_a_class_that_a_party_lacks_gets_no_gradient(name):
    algorithm = build(name)
    task, local = make_job(algorithm, [5, 0, 2], [0.3, 9.0, -0.2])
    step = algorithm.direction(task, local, batch_of(0, 2, 2))
    assert float(step.grad["weight"][1]) == 0
    assert float(step.grad["weight"][0]) != 0
    padded = batch_of(0, 2, 2, 1)._replace(mask=torch.tensor([True, True, True, False]))
    again = algorithm.direction(task, local, padded)
    assert float(again.loss) == pytest.approx(float(step.loss), abs=1e-15)
    assert torch.allclose(again.grad["weight"], step.grad["weight"], atol=1e-15, rtol=0)


def test_parties_that_hold_each_class_alike_have_fedavgs_steps(table, dealt, train, same):
    """Equal margins and priors change no softmax: in float64 nothing but rounding is left."""
    owner = [i // 45 for i in range(90)]
    split = dealt(table, owner)
    assert all(len(set(row)) == 1 for row in split.train.counts.tolist())
    options = {"rounds": 2, "momentum": 0.9, "batch_size": 7}
    expected = train(split, table, algorithm="fedavg", **options).state.models
    for name in ("fedlc", "balanced-softmax"):
        found = train(split, table, algorithm=name, **options).state.models
        assert largest_gap(found, expected) < 1e-5
    assert same(train(split, table, algorithm="fedrs", **options).state.models, expected)


def test_the_counts_are_not_sent(table, table_split, train):
    a, b = (train(table_split, table, algorithm=name).history[0] for name in ("fedlc", "fedavg"))
    assert a["bytes_up"] == b["bytes_up"]
    assert a["bytes_down"] == b["bytes_down"]


def test_models_are_evaluated_by_their_plain_logits(table, table_split, train):
    done = train(table_split, table, algorithm="fedlc", rounds=1)
    x = torch.from_numpy(table.test_features(slice(None)))
    right = (done.model(0)(x).argmax(1).numpy() == table.test_labels).mean()
    assert done.history[-1]["test_accuracy"] == pytest.approx(right, abs=1e-12)
    assert isinstance(done, fltrain.Run)


@pytest.mark.parametrize("name", ["fedlc", "balanced-softmax", "fedrod"])
def test_smoothed_labels_are_refused(name, table, table_split, train, double):
    """They give a part of each label to classes that a party lacks, whose loss is beyond measure."""
    with pytest.raises(UsageError, match=f"{name} needs label-smoothing 0"):
        train(table_split, table, model=double(), algorithm=build(name), label_smoothing=0.1)
