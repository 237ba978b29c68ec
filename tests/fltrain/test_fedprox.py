"""FedProx: where it is FedAvg, one pull worked out by hand, and what the pull does."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import fltrain
import niidpart
from fltrain import tree
from fltrain.algorithms import fedavg, fedprox, solo

from ._cohorts import sample

# What the shared tests try besides (`_variants.py`).
VARIANTS = [{"mu": 0.3}, {"mu": 0.0}]

SAMPLED = {"rounds": 3, "local_epochs": 2, "fraction": 0.6, "momentum": 0.9, "weight_decay": 1e-3}


def batch_norm():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def test_without_a_pull_it_is_fedavg(table, table_split, train, same_state):
    prox, avg = (
        train(table_split, table, algorithm=a, model=batch_norm(), batch_size=90, **SAMPLED)
        for a in (fedprox(mu=0.0), fedavg())
    )
    assert same_state(prox.state, avg.state)
    assert prox.history == avg.history
    assert prox.algorithm.direction is avg.algorithm.direction  # the term is not computed


@pytest.mark.parametrize("mu", [0.01, 1.0, 100.0])
def test_in_a_single_step_there_is_nothing_to_pull_at(table, table_split, train, same_state, mu):
    prox, avg = (
        train(table_split, table, algorithm=a, local_steps=1, momentum=0.9, rounds=3, fraction=0.6)
        for a in (fedprox(mu=mu), fedavg())
    )
    assert same_state(prox.state, avg.state)


@pytest.mark.parametrize(("momentum", "expected"), [(0.0, 0.0925021), (0.5, 0.1175021)])
def test_two_steps_by_hand(dealt, train, momentum, expected):
    """One example x = 1 of class 0; the model is w x with w = (0, 0). Gradients are p - onehot, components of opposite sign: the first ones here.

    mu = 1, lr = 0.1.
    Step 1: p = (1/2, 1/2), gradient -1/2, no pull: y = (0.05, -0.05).
    Step 2: p_0 = 1 / (1 + e^-0.1) = 0.5249792; gradient p_0 - 1 = -0.4750208, pull 1 x 0.05: together -0.4250208.
    y = 0.05 + 0.1 x 0.4250208 = 0.0925021. With momentum 1/2: v = -0.5 / 2 - 0.4250208 = -0.6750208, y = 0.1175021.
    """
    x, y = np.ones((2, 1), np.float32), np.array([0, 1])
    data = niidpart.from_arrays(x, y, x, y)
    model = nn.Linear(1, 2, bias=False)
    nn.init.zeros_(model.weight)
    done = train(
        dealt(data, [0, -1]),
        data,
        model=model,
        algorithm=fedprox(mu=1.0),
        rounds=1,
        local_steps=2,
        lr=0.1,
        momentum=momentum,
    )
    assert done.state.models["weight"][0, :, 0].tolist() == pytest.approx(
        [expected, -expected], abs=5e-8
    )


def test_the_stronger_the_pull_the_nearer_the_parties_stay(table, table_split, train):
    start, moved = dict(fltrain.models.create("linear", (6,), 3, 0).named_parameters()), []
    for mu in (0.0, 0.1, 1.0, 3.0):
        done = train(
            table_split,
            table,
            algorithm=fedprox(mu=mu),
            model="linear",
            rounds=1,
            local_epochs=20,
            momentum=0.0,
        )
        moved.append(
            math.sqrt(
                sum(
                    float(((w[0] - start[k].detach()) ** 2).sum())
                    for k, w in done.state.models.items()
                )
            )
        )
    assert all(far > 1.1 * near for far, near in itertools.pairwise(moved))


def test_only_trained_parameters_are_pulled(table, table_split, train):
    model = batch_norm()
    model[0].weight.requires_grad_(False)
    done = train(
        table_split, table, model=model, algorithm=fedprox(mu=1.0), batch_size=90, **SAMPLED
    )
    assert "0.weight" in done.state.buffers
    assert torch.allclose(done.state.buffers["0.weight"][0], model[0].weight, rtol=1e-6, atol=0)
    assert all(leaf.isfinite().all() for leaf in tree.leaves(done.state.models))


def test_it_moves_one_model_each_way(table, table_split, train):
    metrics = train(table_split, table, algorithm="fedprox", model="linear", rounds=1).history[0]
    assert metrics["bytes_down"] == metrics["bytes_up"] == 5 * 4 * 21


@pytest.mark.parametrize("mu", [-0.1, -math.inf])
def test_a_pull_must_not_push(mu):
    with pytest.raises(ValueError, match=r"mu is -"):
        fedprox(mu=mu)
    with pytest.raises(ValueError, match="finite number"):
        fedprox(mu=math.nan)


def test_the_mean_of_the_text_weighs_those_drawn_alike(table, table_split, train, distance):
    usual = SAMPLED | {"rounds": 1}
    alike = train(table_split, table, algorithm=fedprox(weights="uniform"), **usual)
    own = train(
        table_split,
        table,
        algorithm=replace(solo(), direction=fedprox().direction, hyper={"mu": 0.01}),
        **usual,
    )
    cohort = sample(5, 0.6, 0, 1)
    mean = tree.map(lambda y: y[cohort].double().mean(0, keepdim=True), own.state.parties["params"])
    assert distance(alike.state.models, mean) < 1e-6
