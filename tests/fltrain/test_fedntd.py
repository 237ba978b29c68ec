"""FedNTD: FedAvg at beta 0 and in a first step, the term's value and gradient, what the true class has no part in."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fltrain import tree
from fltrain.algorithms import fedavg, fedntd
from fltrain.algorithms.fedntd import distil_not_true
from fltrain.interface import Batch, Local
from fltrain.tasks.model_task import ModelTask

from ._replay import FULL, average, largest_gap, list_parties, make_sgd, take_steps


def test_beta_0_is_fedavg_bit_for_bit(table, table_split, train, same_state):
    a, b = (
        train(table_split, table, algorithm=f, momentum=0.9) for f in (fedntd(beta=0), fedavg())
    )
    assert same_state(a.state, b.state)
    assert a.history == b.history


def test_one_step_a_round_is_fedavgs(table, table_split, train, double):
    """At the weights received both say the same, and the divergence has no gradient there."""
    once = FULL | {"local_epochs": 1}
    a, b = (
        train(table_split, table, model=double(), algorithm=f, **once).state.models
        for f in (fedntd(beta=3.0), fedavg())
    )
    assert largest_gap(a, b) < 1e-14


def test_the_true_class_has_no_part_in_it():
    g = torch.Generator().manual_seed(0)
    logits, given = torch.randn(2, 6, 5, generator=g, dtype=torch.float64)
    y = torch.tensor([0, 1, 2, 3, 4, 0])
    before = distil_not_true(logits, given, y, 1.0)
    rows = torch.arange(6)
    other, taught = logits.clone(), given.clone()
    other[rows, y] = 77.0
    taught[rows, y] = -5.0
    assert torch.equal(distil_not_true(other, taught, y, 1.0), before)
    assert float(before.min()) > 0
    assert float(distil_not_true(given, given, y, 1.0).abs().max()) == 0


def test_it_is_the_papers_sum():
    """sum over c != y of q_g log (q_g / q)."""
    g = torch.Generator().manual_seed(1)
    logits, given = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    y, tau = torch.tensor([2, 0, 1, 1]), 2.0
    for i in range(4):
        others = [c for c in range(3) if c != int(y[i])]
        q, q_g = (
            [math.exp(z[i, c] / tau) / sum(math.exp(z[i, k] / tau) for k in others) for c in others]
            for z in (logits, given)
        )
        expected = sum(a * math.log(a / b) for a, b in zip(q_g, q, strict=True))
        assert float(distil_not_true(logits, given, y, tau)[i]) == pytest.approx(
            expected, abs=1e-14
        )


def not_true(z, y):
    """The logits of the classes that are not y, one example after another."""
    return torch.stack([torch.cat([row[:c], row[c + 1 :]]) for row, c in zip(z, y, strict=True)])


def test_rounds_are_those_written_out_by_torch(table, table_split, train, double, certify):
    """Unequal parties, momentum, weight decay; torch's own divergence, batchmean, as in the authors' code."""
    algorithm = fedntd(beta=0.7, tau=2.0)
    done = train(table_split, table, model=double(), algorithm=algorithm, local_epochs=3, **FULL)
    parties, model = list_parties(table_split, table), dict(double().state_dict())
    for _ in range(FULL["rounds"]):
        states = []
        for party in parties:
            own, received = double(), double()
            own.load_state_dict(model)
            received.load_state_dict(model)

            def loss(own=own, received=received, party=party):
                z, given = own(party.x), received(party.x).detach()
                log_q = F.log_softmax(not_true(z, party.y) / 2.0, dim=1)
                q_g = F.softmax(not_true(given, party.y) / 2.0, dim=1)
                kl = nn.KLDivLoss(reduction="batchmean")(log_q, q_g)
                return F.cross_entropy(z, party.y) + 0.7 * 2.0**2 * kl

            take_steps(make_sgd(own.parameters()), loss, epochs=3)
            states.append(own.state_dict())
        model = average(states, parties, list(model))
    certify("fedntd", largest_gap(tree.index(done.state.models, 0), model))


def test_one_step_by_hand():
    """Logits are weights x 1. K = 3, class 0, beta = 2, tau = 1. Weights (0, 0, 0), received (0, log 3, 0).

    Not true: q = (1/2, 1/2), q_g = (3/4, 1/4); KL = 3/4 log (3/2) + 1/4 log (1/2) = 0.130812035941; its gradient q - q_g = (-1/4, 1/4).
    Cross entropy log 3 = 1.098612288668, gradient (-2/3, 1/3, 1/3). Sum: loss 1.360236360550, gradient (-2/3, 1/3 - 1/2, 1/3 + 1/2).
    """
    task = ModelTask(nn.Linear(1, 3, bias=False).double())
    now, start = (
        {"weight": torch.tensor([[a] for a in z], dtype=torch.float64)}
        for z in ((0.0, 0.0, 0.0), (0.0, math.log(3), 0.0))
    )
    local = Local(now, {}, start, {}, {}, {}, {}, {"beta": 2.0, "tau": 1.0}, 0)
    batch = Batch(torch.ones(1, 1, dtype=torch.float64), torch.tensor([0]), None, 0, 0)
    step = fedntd().direction(task, fedntd().begin(task, local), batch)
    assert float(step.loss) == pytest.approx(1.360236360550, abs=1e-12)
    assert step.grad["weight"].flatten().tolist() == pytest.approx(
        [-2 / 3, 1 / 3 - 1 / 2, 1 / 3 + 1 / 2], abs=1e-12
    )
