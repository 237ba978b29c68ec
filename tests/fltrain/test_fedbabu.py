"""FedBABU: the head stays as it was drawn, whatever momentum and decay do; the body is FedAvg's on a frozen head."""

import numpy as np
import pytest
import torch
from torch import nn

import niidpart
from fltrain import UsageError, tree
from fltrain.algorithms import fedavg, fedbabu

from ._replay import FULL, average, fit, largest_gap, list_parties, make_sgd
from .test_fedper import TwoNumbers

# Below a head that is drawn, a small body learns slowly: what the shared tests ask for in 20 rounds it
# does with biases alone for a head.
FEW_ROUNDS = {"tuning_epochs": 1, "head": "bias"}
EXACT = {"head": "head"}  # for models without biases
# What the shared tests try besides (`_variants.py`).
VARIANTS = [{"head": "bias"}]

HARD = {
    "rounds": 3,
    "momentum": 0.9,
    "weight_decay": 1e-2,
    "lr": 0.05,
    "batch_size": 6,
    "local_epochs": 2,
    "fraction": 0.8,
}


def make_model(frozen=False):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    model[2].requires_grad_(not frozen)
    return model


@pytest.mark.parametrize("how", [{}, {"optimizer": "adam"}, {"clip_norm": 0.1}], ids=str)
def test_it_is_fedavg_on_a_model_whose_head_is_frozen(how, table, table_split, train):
    hard = {k: v for k, v in HARD.items() if k != "momentum"} if "optimizer" in how else HARD
    a, b = (
        train(table_split, table, model=model, algorithm=algorithm, **hard | how)
        for model, algorithm in ((make_model(), fedbabu()), (make_model(True), fedavg()))
    )
    body = {name: a.state.models[name] for name in ("0.weight", "0.bias")}
    assert largest_gap(body, b.state.models) < 1e-6
    start = dict(make_model().named_parameters())
    for name in ("2.weight", "2.bias"):
        assert torch.equal(a.state.models[name][0], start[name])


def test_the_body_alone_is_sent(table, table_split, train):
    first = train(table_split, table, model=make_model(), algorithm=fedbabu(), **HARD).history[0]
    assert first["bytes_up"] == first["bytes_down"] == 4 * 4 * 56


def test_all_are_served_one_model_and_fine_tune_it(table, table_split, train):
    done = train(table_split, table, model=make_model(), algorithm=fedbabu(), **HARD)
    assert len(done.algorithm.serve(done.state, done.algorithm.hyper).which) == 1
    assert len(done.history[-1]["finetuned_party_test_accuracy"]) == 5


@pytest.mark.parametrize(("head", "fault"), [("0+2", "nothing to exchange"), ("conv", "no layer")])
def test_a_head_that_is_all_or_nothing_is_refused(head, fault, table, table_split, train):
    with pytest.raises(UsageError, match=fault):
        train(table_split, table, model=make_model(), algorithm=fedbabu(head=head), **HARD)


def test_rounds_are_those_written_out_by_torch(table, table_split, train, double, certify):
    """Unequal parties, momentum, weight decay; the head has learning rate 0, as in the authors' code."""
    algorithm = fedbabu(tuning_epochs=1)
    done = train(table_split, table, model=double(), algorithm=algorithm, local_epochs=3, **FULL)
    parties, body = list_parties(table_split, table), {}
    for _ in range(FULL["rounds"]):
        states = []
        for party in parties:
            model = double()
            model.load_state_dict(body, strict=False)
            groups = [
                {"params": model[0].parameters()},
                {"params": model[2].parameters(), "lr": 0.0},
            ]
            fit(model, party, make_sgd(groups), epochs=3)
            states.append(model.state_dict())
        body = average(states, parties, ["0.weight", "0.bias"])
    found = tree.index(done.state.models, 0)
    head = {name: p.detach() for name, p in double().named_parameters() if name.startswith("2")}
    certify("fedbabu", largest_gap(found, body | head))


def test_one_step_by_hand(dealt, train):
    """The example of test_fedper.py: w = (w_0 + 3 w_1) / 4 = 0.999603973838, and s stays 1."""
    x = np.array([[1.0], [2.0], [2.0], [2.0], [1.0], [2.0]], np.float32)
    y = np.array([0, 1, 1, 1, 0, 1])
    data = niidpart.from_arrays(x, y, x, y)
    at_home = [-1, -1, -1, -1, 0, 1]
    state = train(
        dealt(data, [0, 1, 1, 1, -1, -1], test=at_home),
        data,
        model=TwoNumbers(),
        algorithm=fedbabu(head="scale", tuning_epochs=1),
        rounds=1,
        lr=0.1,
        momentum=0.9,
        weight_decay=0.0,
    ).state
    assert float(state.models["line.weight"]) == pytest.approx(0.999603973838, abs=1e-12)
    assert float(state.models["scale.weight"]) == 1.0


def test_statistics_of_the_head_stay_with_it(table, table_split, train):
    """As drawn, in no upload and no byte; those of the body are averaged and sent."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.BatchNorm1d(8), nn.Linear(8, 3)
        )
    done = train(table_split, table, model=model, algorithm=fedbabu(head="3+4"), **HARD)
    buffers = done.state.buffers
    assert torch.equal(buffers["3.running_mean"], torch.zeros(1, 8))
    assert torch.equal(buffers["3.running_var"], torch.ones(1, 8))
    assert int(buffers["3.num_batches_tracked"]) == 0
    assert float(buffers["1.running_mean"].abs().min()) > 0
    assert int(buffers["1.num_batches_tracked"]) > 0
    body = 6 * 8 + 8 + 2 * 8 + 2 * 8
    first = done.history[0]
    assert first["bytes_up"] == first["bytes_down"] == 4 * 4 * body
