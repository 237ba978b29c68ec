"""FedPer: the last layers never travel, the rest is FedAvg's; FedBN is a case of the same partition."""

import numpy as np
import pytest
import torch
from torch import nn

import niidpart
from fltrain import UsageError, tree
from fltrain.algorithms import fedavg, fedbn, fedper, solo

from ._replay import FULL, average, fit, largest_gap, list_parties, make_sgd

# What the shared tests try besides (`_variants.py`).
VARIANTS = [{"own": "bias"}]

HARD = {
    "rounds": 3,
    "momentum": 0.9,
    "weight_decay": 1e-3,
    "lr": 0.05,
    "batch_size": 6,
    "local_epochs": 2,
    "fraction": 0.8,
}
HEAD = {"3.weight", "3.bias"}


@pytest.fixture
def normed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def test_the_head_is_in_no_model_of_the_server_and_in_no_bytes(table, table_split, train, normed):
    done = train(table_split, table, model=normed, algorithm=fedper(), **HARD)
    assert done.state.parties["params"].keys() == HEAD
    assert done.state.parties["buffers"] == {}
    assert not done.state.models.keys() & HEAD
    # 56 numbers of the first layer, 16 of scale and shift, 16 of mean and variance; 27 stay
    assert done.history[0]["bytes_up"] == done.history[0]["bytes_down"] == 4 * 4 * 88


def test_in_the_first_round_the_rest_is_fedavgs_and_the_head_is_solos(
    table, table_split, train, normed, same
):
    once = HARD | {"rounds": 1}
    per, avg, own = (
        train(table_split, table, model=normed, algorithm=f, **once).state
        for f in (fedper(), fedavg(), solo())
    )
    assert same(per.models, {k: v for k, v in avg.models.items() if k not in HEAD})
    assert same(per.buffers, avg.buffers)
    assert same(per.parties["params"], {k: own.parties["params"][k] for k in per.parties["params"]})


def test_with_the_norms_for_its_own_it_is_fedbn(table, table_split, train, normed, same_state):
    a, b = (
        train(table_split, table, model=normed, algorithm=f, **HARD)
        for f in (fedper(own="norm"), fedbn())
    )
    assert same_state(a.state, b.state)
    assert a.history == b.history


def test_each_party_is_served_the_body_of_all_with_its_own_head(table, table_split, train, normed):
    done = train(table_split, table, model=normed, algorithm=fedper(), **HARD)
    for party in range(5):
        weights = dict(done.model(party).named_parameters())
        assert torch.equal(weights["0.weight"], done.state.models["0.weight"][0])
        assert torch.equal(weights["3.weight"], done.state.parties["params"]["3.weight"][party])


def test_a_new_party_is_served_the_mean_of_the_heads_that_were_trained(
    table, table_split, train, normed
):
    once = HARD | {"rounds": 1, "fraction": 0.6}
    done = train(table_split, table, model=normed, algorithm=fedper(), **once)
    heads = done.state.parties["params"]["3.weight"]
    start = dict(normed.named_parameters())["3.weight"]
    is_trained = [not torch.equal(head, start) for head in heads]
    assert is_trained.count(True) == 3
    served = done.algorithm.serve_new(done.state, done.algorithm.hyper)
    mean = heads[is_trained].double().mean(0)
    assert float((served.models["3.weight"][0] - mean).detach().abs().max()) < 1e-6


@pytest.mark.parametrize(
    ("algorithm", "fault"),
    [
        (lambda: fedper(own="conv"), "no layer of the model is named 'conv' or of that kind"),
        (lambda: fedper(own="linear+norm"), "leaves the parties of fedper nothing to exchange"),
    ],
)
def test_a_partition_that_names_nothing_or_all_is_refused(
    algorithm, fault, table, table_split, train, normed
):
    with pytest.raises(UsageError, match=fault):
        train(table_split, table, model=normed, algorithm=algorithm(), **HARD)


def test_rounds_are_those_written_out_by_torch(table, table_split, train, double, certify):
    """Unequal parties, momentum, weight decay; torch's own SGD over all parameters of a party."""
    done = train(table_split, table, model=double(), algorithm=fedper(), local_epochs=3, **FULL)
    parties = list_parties(table_split, table)
    certify("fedper", measure_beside_torch(done, parties, double, own=["2.weight", "2.bias"]))


def measure_beside_torch(done, parties, make_model, own):
    """The largest difference of body and own layers. own: the names of what parties keep."""
    body, locals_ = {}, [make_model() for _ in parties]
    for _ in range(FULL["rounds"]):
        for party, model in zip(parties, locals_, strict=True):
            model.load_state_dict(body, strict=False)
            fit(model, party, make_sgd(model.parameters()), epochs=3)
        shared = [name for name, _ in locals_[0].named_parameters() if name not in own]
        body = average([model.state_dict() for model in locals_], parties, shared)
    gaps = [largest_gap(tree.index(done.state.models, 0), body)]
    for party, model in enumerate(locals_):
        kept = {key: model.state_dict()[key] for key in own}
        gaps.append(largest_gap(tree.index(done.state.parties["params"], party), kept))
    return max(gaps)


class TwoNumbers(nn.Module):
    """Logits (0, s w x) with w = s = 1."""

    def __init__(self):
        super().__init__()
        self.line, self.scale = (nn.Linear(1, 1, bias=False).double() for _ in range(2))
        nn.init.ones_(self.line.weight)
        nn.init.ones_(self.scale.weight)

    def forward(self, x):
        return nn.functional.pad(self.scale(self.line(x.double())), (1, 0))


def test_one_step_by_hand(dealt, train):
    """Party 0: one example x = 1 of class 0; party 1: three examples x = 2 of class 1; one step of 0.1. d loss / d logit = p - y.

    Party 0: p = 1 / (1 + exp(-1)) = 0.731058578630; both gradients are p x 1; w_0 = s_0 = 0.926894142137.
    Party 1: p = 1 / (1 + exp(-2)) = 0.880797077978; both are (p - 1) x 2 = -0.238405844044; w_1 = s_1 = 1.023840584404.
    w = (w_0 + 3 w_1) / 4 = 0.999603973838; s stays 0.926894142137 at party 0 and 1.023840584404 at party 1.
    """
    two = (np.array([[1.0], [2.0], [2.0], [2.0]], np.float32), np.array([0, 1, 1, 1]))
    data = niidpart.from_arrays(*two, *two)
    state = train(
        dealt(data, [0, 1, 1, 1]),
        data,
        model=TwoNumbers(),
        algorithm=fedper(own="scale"),
        rounds=1,
        lr=0.1,
        momentum=0.0,
    ).state
    assert state.models["line.weight"].flatten().tolist() == pytest.approx(
        [0.999603973838], abs=1e-12
    )
    assert state.parties["params"]["scale.weight"].flatten().tolist() == pytest.approx(
        [0.926894142137, 1.023840584404], abs=1e-12
    )
