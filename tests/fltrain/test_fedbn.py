"""FedBN: normalisation layers never travel, the rest is FedAvg's."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import niidpart
from fltrain import tree
from fltrain.algorithms import fedavg, fedbn, fedprox, solo
from fltrain.checkpoints.state_digest import digest_state
from fltrain.checkpoints.store import Bound, CheckpointStore
from fltrain.disk.plain_folder import PlainFolder
from fltrain.runs.traffic import count_model_bytes

from ._cohorts import sample
from ._replay import FULL, list_parties
from ._stacked import Double
from .test_fedper import measure_beside_torch

HARD = {
    "rounds": 3,
    "momentum": 0.9,
    "weight_decay": 1e-3,
    "lr": 0.05,
    "batch_size": 6,
    "local_epochs": 2,
}
NORM = {"1.weight", "1.bias"}
STATISTICS = {"1.running_mean", "1.running_var", "1.num_batches_tracked"}


def model(norm):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), norm, nn.ReLU(), nn.Linear(8, 3))


@pytest.fixture
def normed():
    return model(nn.BatchNorm1d(8))


def test_rounds_are_those_written_out_by_torch(table, table_split, train, certify):
    """In float64: unequal parties, momentum, weight decay; each party has its own scales and shifts."""

    def make():
        return nn.Sequential(Double(), *model(nn.BatchNorm1d(8))).double()

    done = train(table_split, table, model=make(), algorithm=fedbn(), local_epochs=3, **FULL)
    own = ["2.weight", "2.bias"]
    certify("fedbn", measure_beside_torch(done, list_parties(table_split, table), make, own))


@pytest.mark.parametrize("fraction", [1.0, 0.4])
def test_a_model_without_normalisation_is_fedavg_bit_for_bit(
    fraction, table, table_split, train, same
):
    a, b = (
        train(
            table_split, table, model=model(nn.Identity()), algorithm=f, fraction=fraction, **HARD
        )
        for f in (fedavg(), fedbn())
    )
    assert same(a.state.models, b.state.models)
    assert a.history == b.history
    assert len(b.algorithm.serve(b.state, b.algorithm.hyper).which) == 1


def test_no_upload_and_no_global_model_has_an_entry_of_a_normalisation_layer(
    table, table_split, train, normed
):
    algorithm, uploads = fedbn(), []

    def finish(task, local, work):
        upload, own = algorithm.finish(task, local, work)
        uploads.append(upload)
        return upload, own

    state = train(
        table_split, table, model=normed, algorithm=replace(algorithm, finish=finish), **HARD
    ).state
    assert len(uploads) == 3 * 5
    assert all(
        upload["models"].keys() == {"0.weight", "0.bias", "3.weight", "3.bias"}
        for upload in uploads
    )
    assert all(
        upload.keys() == {"models", "buffers"} and upload["buffers"] == {} for upload in uploads
    )
    assert state.models.keys() == uploads[0]["models"].keys()
    assert state.buffers == {}
    assert state.parties["params"].keys() == NORM
    assert state.parties["buffers"].keys() == STATISTICS


def test_in_the_first_round_the_rest_is_the_mean_of_the_local_models_and_the_norm_layers_are_theirs(
    table, table_split, train, normed, same
):
    once = HARD | {"rounds": 1}
    bn, avg, own = (
        train(table_split, table, model=normed, algorithm=f, **once).state
        for f in (fedbn(), fedavg(), solo())
    )
    assert same(bn.models, {k: v for k, v in avg.models.items() if k not in NORM})
    assert same(bn.parties["params"], {k: v for k, v in own.parties["params"].items() if k in NORM})
    assert same(bn.parties["buffers"], own.parties["buffers"])


def test_no_two_parties_have_the_same_norm_entries(table, table_split, train, normed):
    parties = train(table_split, table, model=normed, algorithm=fedbn(), **HARD).state.parties
    for leaf in [
        *tree.leaves(parties["params"]),
        parties["buffers"]["1.running_mean"],
        parties["buffers"]["1.running_var"],
    ]:
        assert all(not torch.equal(leaf[i], leaf[j]) for i in range(5) for j in range(i))


def test_a_party_outside_the_cohort_keeps_what_it_has_and_begins_with_the_common_start(
    table, table_split, train, normed, same
):
    before, after = (
        train(
            table_split,
            table,
            model=normed,
            algorithm=fedbn(),
            fraction=0.4,
            **HARD | {"rounds": r},
        )
        for r in (1, 2)
    )
    first, second = (sample(5, 0.4, 0, r).tolist() for r in (1, 2))
    start = {
        "params": {n: p.detach() for n, p in normed.named_parameters() if n in NORM},
        "buffers": dict(normed.named_buffers()),
    }
    for party in range(5):
        assert same(*(tree.index(done.state.parties, party) for done in (before, after))) == (
            party not in second
        )
        assert same(tree.index(before.state.parties, party), start) == (party not in first)


def test_each_party_is_served_the_global_model_with_its_own_norm_layers(
    table, table_split, train, normed
):
    done = train(table_split, table, model=normed, algorithm=fedbn(), **HARD)
    served = done.algorithm.serve(done.state, done.algorithm.hyper)
    assert served.which.tolist() == [0, 1, 2, 3, 4]
    accuracies = []
    for party in range(5):
        module = done.model(party)
        entries = dict(module.named_parameters()) | dict(module.named_buffers())
        assert all(torch.equal(entries[n], w[0]) for n, w in done.state.models.items())
        assert all(
            torch.equal(entries[n], w[party])
            for part in ("params", "buffers")
            for n, w in done.state.parties[part].items()
        )
        with torch.no_grad():
            right = (
                module(torch.from_numpy(table.test_features(slice(None)))).argmax(1).numpy()
                == table.test_labels
            )
        accuracies.append(right.mean())
    assert math.isclose(done.history[-1]["test_accuracy"], np.mean(accuracies), abs_tol=1e-12)
    assert math.isclose(done.history[-1]["test_accuracy_std"], np.std(accuracies), abs_tol=1e-12)


def test_the_share_of_the_norm_layers_is_saved_in_traffic(table, table_split, train, normed):
    """Exchanged are 56 + 27 numbers; FedAvg sends the 16 of scale and shift and the 16 of mean and variance too."""
    a, b = (
        train(table_split, table, model=normed, algorithm=f, fraction=0.8, **HARD)
        for f in (fedavg(), fedbn())
    )
    assert a.history[0]["bytes_up"] == 4 * 4 * 115
    assert b.history[0]["bytes_up"] == b.history[0]["bytes_down"] == 4 * 4 * 83
    assert b.history[0]["bytes_table4"] == 5 * 4 * 83
    assert count_model_bytes(b.state) == 4 * 83


@pytest.mark.parametrize("norm", [nn.GroupNorm(2, 8), nn.LayerNorm(8)], ids=["group", "layer"])
def test_normalisation_is_told_by_the_kind_of_module(norm, table, table_split, train):
    state = train(table_split, table, model=model(norm), algorithm=fedbn(), **HARD).state
    assert state.parties["params"].keys() == NORM
    assert state.parties["buffers"] == {}
    assert not state.models.keys() & NORM


def test_a_frozen_norm_layer_stays_at_home_too_and_other_buffers_travel(
    table, table_split, train, normed
):
    normed[1].weight.requires_grad_(False)
    normed[0].bias.requires_grad_(False)
    state = train(table_split, table, model=normed, algorithm=fedbn(), **HARD).state
    assert state.parties["params"].keys() == {"1.bias"}
    assert state.parties["buffers"].keys() == STATISTICS | {"1.weight"}
    assert torch.equal(state.parties["buffers"]["1.weight"], torch.ones(5, 8))
    assert state.buffers.keys() == {"0.bias"}


def test_what_the_parties_keep_survives_a_checkpoint(
    table, table_split, train, normed, same_state, tmp_path
):
    state = train(table_split, table, model=normed, algorithm=fedbn(), **HARD).state
    store = CheckpointStore(PlainFolder(tmp_path))
    store.write(state, 3, Bound(config="", metrics="", state=digest_state(state)))
    assert same_state(store.read(3).state, state)


class ScaleNorm(nn.Module):
    """A normalisation layer by its name: one factor."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.factor


class TwoNumbers(nn.Module):
    """Logits (0, s w x) with w = s = 1; s belongs to a normalisation layer."""

    def __init__(self):
        super().__init__()
        self.line, self.scale = nn.Linear(1, 1, bias=False), ScaleNorm()
        nn.init.ones_(self.line.weight)

    def forward(self, x):
        return nn.functional.pad(self.scale(self.line(x)), (1, 0))


def test_one_step_by_hand(dealt, train):
    """Party 0: one example x = 1 of class 0; party 1: three examples x = 2 of class 1; one step of 0.1. d loss / d logit = p - y.

    Party 0: p = 1 / (1 + exp(-1)) = 0.7310586; both gradients are 0.7310586 x 1; w_0 = s_0 = 0.9268941.
    Party 1: p = 1 / (1 + exp(-2)) = 0.8807971; both are (0.8807971 - 1) x 2 = -0.2384058; w_1 = s_1 = 1.0238406.
    w = (w_0 + 3 w_1) / 4 = 0.9996040; s stays 0.9268941 at party 0 and 1.0238406 at party 1.
    """
    two = (np.array([[1.0], [2.0], [2.0], [2.0]], np.float32), np.array([0, 1, 1, 1]))
    data = niidpart.from_arrays(*two, *two)
    state = train(
        dealt(data, [0, 1, 1, 1]),
        data,
        model=TwoNumbers(),
        algorithm=fedbn(),
        rounds=1,
        lr=0.1,
        momentum=0.0,
    ).state
    assert state.models["line.weight"].flatten().tolist() == pytest.approx([0.9996040], abs=1e-6)
    assert state.parties["params"]["scale.factor"].flatten().tolist() == pytest.approx(
        [0.9268941, 1.0238406], abs=1e-6
    )


def test_a_model_of_norm_layers_alone_is_refused(table, table_split, train):
    model = nn.Sequential(
        nn.BatchNorm1d(6), nn.Unflatten(1, (3, 2)), nn.AvgPool1d(2), nn.Flatten()
    )  # six features to three classes
    with pytest.raises(ValueError, match="fedbn has nothing to exchange; take solo"):
        train(table_split, table, model=model, algorithm=fedbn(), **HARD)


def test_without_norms_and_by_no_size_it_is_the_plain_mean(table, table_split, train, same):
    a, b = (
        train(table_split, table, model="twonn", algorithm=f, rounds=2, fraction=0.6)
        for f in (fedbn(weights="uniform"), fedprox(mu=0.0, weights="uniform"))
    )
    assert same(a.state.models, b.state.models)
