"""FedRoD: the generic model is the balanced softmax's, the personal head learns what is left, and moves nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import niidpart
from fltrain import UsageError, tree
from fltrain.algorithms import balanced_softmax, fedavg, fedrod
from fltrain.models import Staged

from ._replay import FULL, average, largest_gap, list_parties, make_sgd, take_steps

HARD = {"rounds": 3, "momentum": 0.9, "weight_decay": 1e-3, "lr": 0.05, "batch_size": 6}
HEAD = ("2.weight", "2.bias")


@pytest.mark.parametrize("start", ["copy", "zero"])
def test_the_generic_model_is_that_of_the_balanced_softmax(
    start, table, table_split, train, double
):
    a, b = (
        train(table_split, table, model=double(), algorithm=f, fraction=0.8, **HARD)
        for f in (fedrod(gamma=1.5, start=start), balanced_softmax(gamma=1.5))
    )
    assert largest_gap(a.state.models, b.state.models) < 1e-14
    names = ("test_accuracy", "bytes_up", "bytes_down")
    assert [[m[n] for n in names] for m in a.history] == [[m[n] for n in names] for m in b.history]


def test_heads_that_begin_at_0_are_no_change_at_first(table, table_split, train, double):
    done = train(table_split, table, model=double(), algorithm=fedrod(start="zero"), rounds=1)
    served = done.algorithm.personal
    zeros = {"params": tree.zeros_like(done.state.parties["params"])}
    state = replace(done.state, parties=done.state.parties | zeros)
    models = served(state, done.algorithm.hyper).models
    assert all(torch.equal(models[name][3], done.state.models[name][0]) for name in models)


@pytest.mark.parametrize("start", ["copy", "zero"])
def test_rounds_are_those_written_out_by_torch(start, table, table_split, train, double, certify):
    """Unequal parties, momentum, weight decay; an optimiser for each of the two, as codes have it."""
    algorithm = fedrod(start=start)
    done = train(table_split, table, model=double(), algorithm=algorithm, local_epochs=3, **FULL)
    parties, model = list_parties(table_split, table), dict(double().state_dict())
    heads = [double()[2] for _ in parties]
    if start == "zero":
        for head in heads:
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
    for _ in range(FULL["rounds"]):
        states = []
        for party, head in zip(parties, heads, strict=True):
            own = double()
            own.load_state_dict(model)
            counts = torch.bincount(party.y, minlength=3).double()
            generic, personal = make_sgd(own.parameters()), make_sgd(head.parameters())
            for _ in range(3):
                z = own[1](own[0](party.x))
                logits = own[2](z)
                left = logits.detach() + head(z.detach())
                generic_loss = F.cross_entropy(logits + counts.log(), party.y)
                take_steps(generic, lambda at=generic_loss: at, epochs=1)
                personal_loss = F.cross_entropy(left, party.y)
                take_steps(personal, lambda at=personal_loss: at, epochs=1)
            states.append(own.state_dict())
        model = average(states, parties, list(model))
    certify("fedrod", largest_gap(tree.index(done.state.models, 0), model))
    for party, head in enumerate(heads):
        kept = tree.index(done.state.parties["params"], party)
        certify("fedrod", largest_gap(kept, {f"2.{n}": w for n, w in head.state_dict().items()}))


def test_personal_metrics_are_of_the_sum_of_both_heads(table, table_split, train, double):
    done = train(table_split, table, model=double(), algorithm=fedrod(), **HARD)
    served = done.algorithm.personal(done.state, done.algorithm.hyper)
    x = torch.from_numpy(table.test_features(slice(None))).double()
    accuracies = []
    for party in range(5):
        own = double()
        own.load_state_dict(tree.index(done.state.models, 0))
        head = tree.index(done.state.parties["params"], party)
        z = own[1](own[0](x))
        logits = own[2](z) + F.linear(z, *(head[name] for name in HEAD))
        at = tree.index(served.models, int(served.which[party]))
        again = torch.func.functional_call(double(), at, (x,))
        assert float((again - logits).detach().abs().max()) < 1e-12
        accuracies.append((logits.argmax(1).numpy() == table.test_labels).mean())
    mean = sum(accuracies) / 5
    assert done.history[-1]["personal_test_accuracy"] == pytest.approx(mean, abs=1e-12)


def test_one_step_by_hand(dealt, train):
    """Model: z = w x, logits (0, u z) and a personal (0, v z) more; w = u = 1, v = 0; one party with one example of each class, x = 1 and 1.

    Equal counts change nothing. p = sigmoid(1) = 0.731058578630 of class 1 for both examples; d loss / d logit = mean of p - y = 0.231058578630.
    lr 0.1: u and w go by -0.0231058578630 to 0.976894142137; the personal gradient is the same, v = -0.0231058578630.
    """
    two = (np.array([[1.0], [1.0]], np.float32), np.array([0, 1]))
    data = niidpart.from_arrays(*two, *two)
    body, out = nn.Linear(1, 1, bias=False), nn.Linear(1, 2, bias=False)
    nn.init.ones_(body.weight)
    with torch.no_grad():
        out.weight.copy_(torch.tensor([[0.0], [1.0]]))
    state = train(
        dealt(data, [0, 0]),
        data,
        model=Staged(cast=Cast(), body=body, out=out).double(),
        algorithm=fedrod(start="zero"),
        rounds=1,
        lr=0.1,
        momentum=0.0,
    ).state
    assert float(state.models["body.weight"]) == pytest.approx(0.976894142137, abs=1e-12)
    assert state.models["out.weight"].flatten().tolist() == pytest.approx(
        [0.023105857863, 0.976894142137], abs=1e-12
    )
    assert state.parties["params"]["out.weight"].flatten().tolist() == pytest.approx(
        [0.023105857863, -0.023105857863], abs=1e-12
    )


class Cast(nn.Module):
    def forward(self, x):
        return x.double()


def test_a_head_that_is_not_linear_in_the_features_is_refused(table, table_split, train):
    model = Staged(body=nn.Linear(6, 4), out=nn.Sequential(nn.ReLU(), nn.Linear(4, 3)))
    with pytest.raises(UsageError, match="fedrod gives each party a second last layer, linear in"):
        train(table_split, table, model=model, algorithm="fedrod")
    model = Staged(body=nn.Linear(6, 4), out=nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 3)))
    with pytest.raises(UsageError, match=r"its stage has to be one nn\.Linear"):
        train(table_split, table, model=model, algorithm="fedrod")
    with pytest.raises(UsageError, match="nothing before its last layer"):
        train(table_split, table, model="linear", algorithm="fedrod")


def test_an_optimiser_that_is_kept_is_refused(table, table_split, train):
    with pytest.raises(UsageError, match="fedrod needs keep-optimizer False"):
        train(table_split, table, algorithm="fedrod", keep_optimizer=True, momentum=0.9)


def test_without_a_prior_the_generic_model_is_fedavgs(table, dealt, train, double):
    """Also where a party lacks a class, which the prior leaves out."""
    split = dealt(table, np.where(table.labels == 2, 1, np.arange(len(table.labels)) % 2))
    a, b = (
        train(split, table, model=double(), algorithm=f, **HARD)
        for f in (fedrod(gamma=0), fedavg())
    )
    assert largest_gap(a.state.models, b.state.models) < 1e-14
