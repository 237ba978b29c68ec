"""The optimiser: local training is torch.optim.SGD on the module, operation by operation."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import niidpart
from fltrain.draws import key, order
from fltrain.models import create
from fltrain.settings import Settings

OPTIMISERS = [
    {"momentum": 0.0},
    {"momentum": 0.9},
    {"weight_decay": 1e-2, "momentum": 0.0},
    {"momentum": 0.9, "weight_decay": 1e-2},
]


@pytest.fixture(scope="module")
def inputs(images, table):
    """model -> (data, its training inputs as the model gets them, labels)"""
    pixels = torch.from_numpy(
        images.features(slice(None)).astype(np.float32) / np.float32(255)
    ).unsqueeze(1)
    return {
        "cnn": (images, pixels, torch.from_numpy(images.labels)),
        "mlp": (
            table,
            torch.from_numpy(table.features(slice(None))),
            torch.from_numpy(table.labels),
        ),
    }


def torch_sgd(module, x, y, settings, rounds):
    """The loop that anybody would write, a new optimiser each round. Returns the weights and the mean loss of the last round."""
    for round in range(1, rounds + 1):
        optimiser = torch.optim.SGD(
            module.parameters(),
            lr=settings.lr,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        losses = []
        for epoch in range(settings.local_epochs):
            for at in order(
                key(settings.seed, "job", round, 0), epoch, len(y), torch.device("cpu")
            ).split(settings.batch_size):
                optimiser.zero_grad()
                loss = F.cross_entropy(module(x[at]), y[at])
                loss.backward()
                optimiser.step()
                losses.append(loss.item())
    return {name: p.detach() for name, p in module.named_parameters()}, sum(losses) / len(losses)


@pytest.mark.parametrize("options", OPTIMISERS, ids=str)
@pytest.mark.parametrize("name", ["cnn", "mlp"])
@pytest.mark.parametrize("rounds", [1, 2])
def test_one_party_trains_as_torch_sgd_bit_for_bit(
    inputs, dealt, train, same, name, options, rounds
):
    data, x, y = inputs[name]
    chosen = {
        "rounds": rounds,
        "local_epochs": 3,
        "batch_size": 16,
        "lr": 0.05,
        "seed": 4,
        "threads": None,
    } | options
    assert len(y) % 16 in (2, 10)  # the last batch of an epoch is short, and counts
    done = train(dealt(data, np.zeros(len(y), int)), data, model=name, **chosen)
    module = create(name, tuple(x.shape[1:]), len(data.class_names), 4)
    start = {n: p.detach().clone() for n, p in module.named_parameters()}
    weights, loss = torch_sgd(module, x, y, Settings(**chosen), rounds)
    final = {n: p[0] for n, p in done.state.models.items()}
    assert same(final, weights)
    assert not same(final, start)
    assert done.history[-1]["steps"] == 3 * -(-len(y) // 16)
    assert done.history[-1]["train_loss"] == pytest.approx(loss, rel=1e-6)


def test_momentum_starts_anew_each_round(inputs, dealt, train, same):
    data, _, y = inputs["mlp"]
    split = dealt(data, np.zeros(len(y), int))
    short = train(
        split, data, model="mlp", rounds=2, batch_size=90, momentum=0.9
    )  # one step a round, so no velocity is ever used
    plain = train(split, data, model="mlp", rounds=2, batch_size=90, momentum=0.0)
    assert same(short.state.models, plain.state.models)
    longer = [
        train(split, data, model="mlp", rounds=2, local_epochs=2, batch_size=90, momentum=m)
        for m in (0.9, 0.0)
    ]
    assert not same(longer[0].state.models, longer[1].state.models)


def test_three_full_batch_steps_by_hand(dealt, train):
    """One weight vector (a, b) without bias, x = 1, both labels once: the gradient is (p - 1/2, 1/2 - p), p = 1 / (1 + exp(b - a)).

    From a = 1, b = 0, lr 0.5, momentum 0.5 and weight decay 0.1, with the recursion v <- 0.5 v + g + 0.1 w, w <- w - 0.5 v:
      step 1: p = 0.731059, v = ( 0.331059, -0.231059), w = (0.834471, 0.115529)
      step 2: p = 0.672374, v = ( 0.421350, -0.276350), w = (0.623796, 0.253704)
      step 3: p = 0.591481, v = ( 0.364536, -0.204286), w = (0.441528, 0.355847)
    """
    x = np.ones((2, 1), np.float32)
    data = niidpart.from_arrays(x, np.array([0, 1]), x, np.array([0, 1]))
    model = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0], [0.0]]))
    done = train(
        dealt(data, [0, 0]),
        data,
        model=model,
        rounds=1,
        local_epochs=3,
        lr=0.5,
        momentum=0.5,
        weight_decay=0.1,
    )
    assert done.state.models["weight"][0, :, 0].tolist() == pytest.approx(
        [0.441528, 0.355847], abs=1e-6
    )
