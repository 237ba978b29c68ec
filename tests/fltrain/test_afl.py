"""AFL: weights move to parties with a high loss and stay on the simplex."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fltrain import UsageError, tree
from fltrain.algorithms import afl, build, fedavg
from fltrain.algorithms.afl import project

from . import _transcribed_mixtures as transcribed
from ._by_hand import HARD, make_two_parties
from ._transcribed import Federation

VARIANTS = [{"weights_lr": 0.0}, {"served": "last"}]


@pytest.mark.parametrize("fraction", [1.0, 0.6])
def test_rounds_are_those_of_a_second_transcription(
    fraction, table, table_split, train, double, certify
):
    how = HARD | {"fraction": fraction}
    done = train(table_split, table, model=double(), algorithm=afl(weights_lr=0.2), **how)
    federation = Federation(table_split, table, double(), **how)
    w, mean, weights = transcribed.afl(federation, how["rounds"], weights_lr=0.2)
    last = torch.cat([leaf[0].reshape(-1) for leaf in tree.leaves(done.state.models)])
    served = torch.cat([p.detach().reshape(-1) for p in done.model().parameters()])
    for found, expected in ((last, w), (served, mean), (done.state.server["weights"], weights)):
        certify("afl", float((found - expected).abs().max()))


def test_with_weights_by_examples_that_stay_it_is_fedavg(table, table_split, train, distance):
    """Weights as shares of all, not as counts: the last bits of a quotient differ."""
    algorithm = afl(weights_lr=0.0, first_weights="examples", served="last")
    fair, plain = (train(table_split, table, algorithm=a, **HARD) for a in (algorithm, fedavg()))
    assert distance(fair.state.models, plain.state.models) < 1e-6


def test_two_rounds_by_hand(dealt, float64, train):
    """weights_lr 1, one step of 0.1. The first of two weights (w, -w).

    Round 1: both weigh 1/2; w = 0.1 (1/2 - 1) / 2 = -0.025. Losses are ln 2 at both: 1/2 + ln 2 each is projected to 1/2 each.
    Round 2: g_0 = -1 / (1 + exp(-0.05)) = -0.51249740, g_1 = 2 / (1 + exp(0.1)) = 0.95004163; w = -0.025 - 0.05 (0.43754423) = -0.04687721.
    Losses ln(1 + exp(0.05)) = 0.71845967 and ln(1 + exp(-0.1)) = 0.64439666: weights 1/2 + (0.71845967 - 0.64439666) / 2 = 0.53703150 and 0.46296850.
    """
    split, data, model = make_two_parties(dealt, float64)
    how = {"rounds": 2, "lr": 0.1, "momentum": 0.0}
    done = train(split, data, model=model, algorithm=afl(weights_lr=1.0), **how)
    assert float(done.state.models["0.weight"][0, 0]) == pytest.approx(-0.04687721, abs=1e-8)
    weights = done.state.server["weights"].tolist()
    assert weights == pytest.approx([0.53703150, 0.46296850], abs=1e-8)
    served = float(done.model()[0].weight[0].detach())
    assert served == pytest.approx((-0.025 - 0.04687721) / 2, abs=1e-8)


def test_weights_stay_on_the_simplex_though_steps_are_long(table, table_split, train):
    how = HARD | {"rounds": 6, "internals": True}
    done = train(table_split, table, algorithm=afl(weights_lr=3.0), **how)
    for metrics in done.history:
        weights = metrics["internal_weight"]
        assert sum(weights) == pytest.approx(1, abs=1e-12)
        assert all(weight >= 0 for weight in weights)
    assert min(weights) == 0  # and it went on with a party that weighs nothing


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_the_projection_is_the_nearest_point_of_the_simplex(values):
    """Beside bisection, and no corner is nearer."""
    given_ = torch.tensor(values, dtype=torch.float64)
    nearest = project(given_)
    assert float(nearest.sum()) == pytest.approx(1, abs=1e-12)
    assert float(nearest.min()) >= 0
    assert torch.allclose(nearest, transcribed.project(given_), atol=1e-12)
    corners = torch.eye(len(values), dtype=torch.float64)
    assert float((nearest - given_).norm()) <= float((corners - given_).norm(dim=1).min()) + 1e-12


def test_a_cohort_that_weighs_nothing_trains(table, table_split, train):
    """All weight goes to one party, and rounds without it still have a mean."""
    done = train(
        table_split, table, algorithm=afl(weights_lr=1e3), **HARD | {"fraction": 0.2, "rounds": 5}
    )
    assert np.isfinite([metrics["train_loss"] for metrics in done.history]).all()


def test_parties_are_drawn_alike(table, table_split, train):
    """Losses count P / S times, which is right on the average where all parties are drawn as often."""
    with pytest.raises(UsageError, match="afl needs cohort uniform"):
        train(table_split, table, algorithm=afl(), cohort="weighted", fraction=0.6)


def test_a_model_and_a_loss_are_sent(table, table_split, train):
    model = 4 * (6 * 3 + 3)
    metrics = train(table_split, table, algorithm=build("afl"), model="linear", rounds=1).history[0]
    assert metrics["bytes_down"] == 5 * model
    assert metrics["bytes_up"] == 5 * (model + 4)


def test_parties_without_examples_change_nothing(table, dealt, train):
    """The losses of three parties count as much where three others hold nothing."""
    how = {"rounds": 3, "local_steps": 1, "batch_size": 90, "init_seed": 0}
    shares = np.repeat([0, 1, 2], [15, 30, 45])
    alone = train(dealt(table, shares), table, algorithm=afl(), **how)
    places = np.array([1, 3, 4])
    beside = train(dealt(table, places[shares], n_parties=6), table, algorithm=afl(), **how)
    weights = beside.state.server["weights"]
    assert weights[places].tolist() == pytest.approx(
        alone.state.server["weights"].tolist(), abs=1e-6
    )
    assert weights[[0, 2, 5]].tolist() == [0, 0, 0]
