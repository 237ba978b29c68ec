"""DP-FedAvg: clipped updates, noise by counter, epsilon by dp-accounting; a transcription and one round by hand."""

import importlib.util
import sys

import numpy as np
import pytest
import torch
from torch import nn

import fltrain
import niidpart
from fltrain import UsageError, tree
from fltrain.algorithms import dp_fedavg, fedavg
from fltrain.draws import key, normal
from fltrain.privacy import compute_epsilon

from ._transcribed import Federation

HAS_ACCOUNTANT = importlib.util.find_spec("dp_accounting") is not None
accountable = pytest.mark.skipif(
    not HAS_ACCOUNTANT, reason="epsilon is by dp-accounting (extra privacy)"
)

# So little noise that a few rounds learn; without statistics of batches, which are refused.
FEW_ROUNDS = {"noise_multiplier": 0.01, "bound": 5.0} | ({} if HAS_ACCOUNTANT else {"delta": 0.0})
NETWORK = "layered"
# What the shared tests try besides (`_variants.py`).
VARIANTS = [{"bound": 0.05, "noise_multiplier": 0.0}]

HARD = {
    "momentum": 0.9,
    "weight_decay": 1e-3,
    "lr": 0.05,
    "batch_size": 6,
    "local_epochs": 2,
    "fraction": 0.6,
}


def silent(**options):
    """Without epsilon."""
    return dp_fedavg(**options | {"delta": 0.0})


def find_length(values):
    return float(torch.stack([v.double().square().sum() for v in tree.leaves(values)]).sum().sqrt())


@pytest.mark.parametrize(("bound", "noise"), [(0.3, 0.0), (0.3, 1.5), (50.0, 0.1)])
def test_it_is_its_transcription(table, table_split, train, double, certify, bound, noise):
    """Unequal parties, cohorts, momentum and decay; the noise of a round is one draw for all numbers."""
    rounds = 3
    done = train(
        table_split,
        table,
        model=double(),
        algorithm=silent(bound=bound, noise_multiplier=noise, server_lr=0.7),
        rounds=rounds,
        **HARD,
    )
    federation = Federation(table_split, table, double(), rounds, **HARD)
    w, stream = federation.start, key(0, "dp-fedavg noise")
    words = torch.tensor([[stream & 0xFFFFFFFF, stream >> 32]])
    for round in range(1, rounds + 1):
        cohort, total = federation.cohort(round), torch.zeros_like(w)
        for party in cohort:
            y = federation.train(w, round, party, federation.gradient)
            update = y - w
            total = total + update * min(1.0, bound / float(update.norm()))
        drawn = normal(words, rows=torch.tensor([round - 1]), epoch=0, width=len(w))[0]
        w = w + 0.7 * (total + noise * bound * drawn) / len(cohort)
    found = torch.cat([leaf.reshape(-1) for leaf in tree.leaves(done.state.models)])
    certify("dp-fedavg", float((found - w).abs().max()))


def test_without_noise_and_bound_it_is_the_plain_mean(table, table_split, train, double, distance):
    private = silent(bound=1e6, noise_multiplier=0.0)
    plain = fltrain.algorithms.build("fedsam", rho=0.0, weights="uniform")
    a, b = (
        train(table_split, table, model=double(), algorithm=f, rounds=3, **HARD).state
        for f in (private, plain)
    )
    assert distance(a.models, b.models) < 1e-12


def test_no_party_moves_the_model_further_than_the_bound(table, dealt, train, distance):
    one = dealt(table, [0] * 90)
    start = train(one, table, algorithm=fedavg(), rounds=1, lr=1e-30).state.models
    for bound in (0.01, 0.1):
        done = train(one, table, algorithm=silent(bound=bound, noise_multiplier=0.0), rounds=1)
        moved = tree.map(torch.sub, done.state.models, start)
        assert find_length(moved) == pytest.approx(bound, rel=1e-5)


def test_the_noise_is_normal_and_new_in_each_round_and_seed(table, table_split, train):
    """2,003 numbers; three parties of five, so that a number has deviation 2 x 0.5 / 3."""
    usual = {"rounds": 1, "fraction": 0.6, "lr": 1e-30}
    quiet = train(table_split, table, algorithm=silent(noise_multiplier=0.0), **usual)
    drawn = []
    for rounds, seed in ((1, 0), (2, 0), (1, 1)):
        asked = usual | {"rounds": rounds, "seed": seed, "init_seed": 0}
        done = train(table_split, table, algorithm=silent(bound=2.0, noise_multiplier=0.5), **asked)
        moved = tree.map(torch.sub, done.state.models, quiet.state.models)
        drawn.append(torch.cat([leaf.reshape(-1) for leaf in tree.leaves(moved)]))
    first, two, other = drawn
    second = two - first
    expected = 2.0 * 0.5 / 3
    for noise in (first, second, other):
        assert float(noise.std()) == pytest.approx(expected, rel=0.08)
        assert abs(float(noise.mean())) < 4 * expected / len(noise) ** 0.5
    for a, b in ((first, second), (first, other)):
        assert abs(float(torch.corrcoef(torch.stack([a, b]))[0, 1])) < 0.1


def test_one_round_by_hand(dealt, train):
    """Two parties of one example x = 1, classes 0 and 1; the model is w x with w = (0, 0), lr 1.

    Gradients are p - onehot: (-1/2, 1/2) and (1/2, -1/2), so that updates are (1/2, -1/2) and its opposite, of length 1 / sqrt 2.
    Party 1 holds it twice, as which its mean gradient is the same: the sum of clipped updates is 0, while a party alone moves by
    0.3 / (1 / sqrt 2) x 1/2 = 0.3 / sqrt 2 = 0.2121320 with bound 0.3.
    """
    x, y = np.ones((3, 1), np.float32), np.array([0, 1, 1])
    data = niidpart.from_arrays(x, y, x, y)
    model = nn.Linear(1, 2, bias=False)
    nn.init.zeros_(model.weight)
    usual = {"model": model, "rounds": 1, "local_steps": 1, "lr": 1.0, "momentum": 0.0}
    algorithm = silent(bound=0.3, noise_multiplier=0.0)
    both = train(dealt(data, [0, 1, 1]), data, algorithm=algorithm, **usual)
    assert both.state.models["weight"][0, :, 0].tolist() == [0.0, 0.0]
    alone = train(dealt(data, [0, -1, -1]), data, algorithm=algorithm, **usual)
    assert alone.state.models["weight"][0, :, 0].tolist() == pytest.approx(
        [0.2121320, -0.2121320], abs=1e-7
    )


def test_parties_send_the_update_and_nothing_else(table, table_split, train):
    metrics = train(table_split, table, algorithm=silent(), model="linear", rounds=1).history[0]
    assert metrics["bytes_down"] == metrics["bytes_up"] == 5 * 4 * 21


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(8), nn.BatchNorm1d(8, affine=False)])
def test_statistics_of_batches_are_refused(table, table_split, train, norm):
    model = nn.Sequential(nn.Linear(6, 8), norm, nn.ReLU(), nn.Linear(8, 3))
    with pytest.raises(UsageError, match=r"1\.running_mean.*group norm"):
        train(table_split, table, model=model, algorithm=silent())


def test_other_norms_and_frozen_weights_are_not_refused(table, table_split, train, distance):
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))
    model[0].weight.requires_grad_(False)
    done = train(table_split, table, model=model, algorithm=silent())
    assert torch.equal(done.state.buffers["0.weight"][0], model[0].weight)


@accountable
def test_epsilon_stands_beside_each_round_and_is_the_librarys(table, table_split, train):
    """Five parties, three of them in a round; with failures fewer, whose rounds count as such."""
    import dp_accounting

    algorithm = dp_fedavg(noise_multiplier=2.0, delta=1e-3)
    usual = {"rounds": 6, "fraction": 0.6, "unavailable": 0.4}
    history = train(table_split, table, algorithm=algorithm, **usual).history
    sizes = [metrics["jobs"] for metrics in history]
    assert len(set(sizes)) > 1
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    accountant = dp_accounting.rdp.RdpAccountant(neighboring_relation=relation)
    for metrics, size in zip(history, sizes, strict=True):
        noise = dp_accounting.GaussianDpEvent(1.0)
        accountant.compose(dp_accounting.SampledWithoutReplacementDpEvent(5, size, noise))
        epsilon = accountant.get_epsilon(1e-3)
        assert metrics["internal_epsilon"] == pytest.approx(epsilon, rel=1e-5)


@accountable
def test_epsilon_of_whole_cohorts_is_that_of_the_gaussian_mechanism():
    """A sum that moves by two bounds under noise of four, once: epsilon is that of a ratio of 2, at most Renyi's bound over orders.

    alpha / (2 x 2^2) + log(1 / delta) / (alpha - 1) is least at alpha = 1 + sqrt(8 log(1 / delta)) = 10.6: 2.524. The library's is tighter.
    """
    epsilon = compute_epsilon({100: 1}, n_parties=100, noise_multiplier=4.0, delta=1e-5)
    assert 1.9 < epsilon < 2.524
    assert epsilon < compute_epsilon({100: 2}, n_parties=100, noise_multiplier=4.0, delta=1e-5)
    assert compute_epsilon({10: 1}, n_parties=100, noise_multiplier=4.0, delta=1e-5) < epsilon


@accountable
def test_epsilon_asks_for_cohorts_that_it_knows(table, table_split, train):
    with pytest.raises(UsageError, match="dp-fedavg needs cohort uniform"):
        train(table_split, table, algorithm=dp_fedavg(), cohort="weighted", fraction=0.6)
    train(table_split, table, algorithm=silent(), cohort="weighted", fraction=0.6)


def test_a_missing_accountant_is_said_before_the_first_round(
    table, table_split, train, monkeypatch
):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    events = []
    with pytest.raises(ModuleNotFoundError, match="pip install dp-accounting"):
        train(table_split, table, algorithm=dp_fedavg(), progress=events.append)
    assert events == []
    history = train(table_split, table, algorithm=silent()).history
    assert "internal_epsilon" not in history[-1]


@pytest.mark.parametrize(("noise", "delta"), [(0.0, 1e-5), (1.0, 0.0), (1.0, 1.0)])
def test_what_has_no_epsilon_is_refused(noise, delta):
    with pytest.raises(UsageError, match="epsilon is finite"):
        compute_epsilon({3: 1}, n_parties=5, noise_multiplier=noise, delta=delta)


@accountable
def test_epsilon_is_not_said_beside_a_calibration(table, table_split, train):
    """Its means and covariances of classes are sent as they are."""
    with pytest.raises(UsageError, match="dp-fedavg needs calibrate 0"):
        train(table_split, table, algorithm=dp_fedavg(), calibrate=20)
    train(table_split, table, algorithm=silent(), model="mlp", calibrate=20)
