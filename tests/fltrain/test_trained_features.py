"""What a trained model makes of examples: the input of its last layer, from what each party is served."""

import numpy as np
import pytest

import fltrain
import niidpart
from fltrain.runs.trained_features import read_features
from niidpart.errors import UsageError

STEPS = {"rounds": 2, "local_epochs": 1, "lr": 0.1}


@pytest.fixture(scope="module")
def digits():
    return niidpart.load("digits")


@pytest.fixture(scope="module")
def split(digits):
    noisy = [("noise", {"sigma": 0.5, "fresh": False})]
    return niidpart.make(digits, "dir", beta=0.3, n_parties=4, transforms=noisy)


def test_they_are_what_is_before_the_last_layer_as_the_party_sees_them(split, digits, tmp_path):
    run = fltrain.run(split, out=tmp_path / "run", **STEPS)
    found = read_features(tmp_path / "run", sample=10**6)
    assert found.round == 2
    assert found.x.shape == (1437, 200)
    assert sorted(np.bincount(found.party)) == sorted(split.train.sizes)
    for party in range(4):
        rows = split.train.party(party)
        assert np.array_equal(found.y[found.party == party], digits.labels[rows])
    # As the party sees them, with its noise, behind the first layer of what it is served.
    rows = [split.train.party(party) for party in range(4)]
    seen = [niidpart.transform(split, digits.features(r), p, r) for p, r in enumerate(rows)]
    x = np.concatenate(seen).reshape(len(found.x), -1).astype(np.float64)
    weights = {name: value[0].double().numpy() for name, value in run.state.models.items()}
    hidden = x @ weights["fc1.1.weight"].T + weights["fc1.1.bias"]
    assert np.allclose(found.x, np.maximum(hidden, 0), atol=1e-4)


def test_each_party_gives_as_many_and_its_own_model_counts(split, tmp_path):
    fltrain.run(split, algorithm="solo", out=tmp_path / "solo", **STEPS)
    found = read_features(tmp_path / "solo", sample=40)
    assert np.array_equal(np.bincount(found.party), [10, 10, 10, 10])
    fltrain.run(split, algorithm="fedavg", out=tmp_path / "fedavg", **STEPS)
    other = read_features(tmp_path / "fedavg", sample=40)
    assert np.array_equal(found.y, other.y)
    assert not np.allclose(found.x, other.x)


def test_they_are_a_data_set_whose_groups_are_the_parties(split, tmp_path):
    fltrain.run(split, out=tmp_path / "run", **STEPS)
    found = read_features(tmp_path / "run", sample=100)
    found.write(tmp_path / "features.npz")
    data = niidpart.load(tmp_path / "features.npz")
    assert np.array_equal(data.features(slice(None)), found.x.astype(np.float32))
    again = niidpart.make(data, "group", n_parties=4)
    assert [len(again.train.party(p)) for p in range(4)] == [25] * 4


def test_a_model_without_a_layer_before_the_last_has_none(split, tmp_path):
    fltrain.run(split, model="linear", out=tmp_path / "run", **STEPS)
    with pytest.raises(UsageError, match=r"has no features: .*nothing before its last layer"):
        read_features(tmp_path / "run")
