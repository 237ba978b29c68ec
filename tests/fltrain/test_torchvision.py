"""Classifiers of torchvision by name; without torchvision, what is said."""

import sys

import numpy as np
import pytest
import torch

import fltrain
import niidpart
from fltrain.algorithms import moon
from fltrain.libraries import is_own_code
from fltrain.models import create
from fltrain.runs.own_files import digest_own_code

from ._torchvision import import_torchvision


@pytest.fixture
def torchvision():
    return import_torchvision()


@pytest.fixture(scope="module")
def colours():
    """12 training and 4 test images of 3 x 32 x 32 in 4 classes."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (12, 32, 32, 3), np.uint8), np.arange(12) % 4
    return niidpart.from_arrays(x, y, x[:4], y[:4])


def test_a_classifier_has_as_many_outputs_as_there_are_classes(torchvision):
    model = create("torchvision:resnet18", (3, 32, 32), 10, 0)
    assert sum(p.numel() for p in model.parameters()) == 11_181_642
    again = create("torchvision:resnet18", (3, 32, 32), 10, 0)
    assert all(map(torch.equal, model.state_dict().values(), again.state_dict().values()))
    mobile = create("torchvision:mobilenet_v2", (3, 64, 64), 10, 0)
    assert sum(p.numel() for p in mobile.parameters()) == 2_236_682


def test_moon_runs_on_a_resnet_of_torchvision_and_resumes(
    torchvision, colours, dealt, train, tmp_path
):
    split = dealt(colours, [0] * 6 + [1] * 6)
    step = {"model": "torchvision:resnet18", "rounds": 2, "batch_size": 6, "lr": 0.01}
    run = train(split, colours, **step, algorithm=moon(projection=8), out=tmp_path / "run")
    assert run.model().fc.project2.out_features == 8
    assert fltrain.RunFolder.open(tmp_path / "run").config["model"] == "torchvision:resnet18"
    assert "own_code" not in fltrain.RunFolder.open(tmp_path / "run").config
    verdict = fltrain.verify(tmp_path / "run", colours, replay=1)
    assert (verdict.faults, verdict.unchecked, len(verdict.replayed)) == ([], [], 1)
    assert fltrain.resume(tmp_path / "run", colours).history == run.history


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("resnet19", (3, 32, 32), "no classifier 'resnet19'; did you mean 'resnet18'"),
        ("fasterrcnn_resnet50_fpn", (3, 32, 32), "no classifier"),
        ("googlenet", (3, 64, 64), "returns a GoogLeNetOutputs in training"),
        ("inception_v3", (3, 299, 299), "torchvision:inception_v3 returns a InceptionOutputs"),
        ("vit_b_16", (3, 32, 32), r"cannot take images of shape \(3, 32, 32\): Wrong image height"),
        ("resnet18", (1, 28, 28), r"images of 3 channels, .* shape \(1, 28, 28\)"),
    ],
)
def test_a_classifier_that_cannot_be_used_says_why(torchvision, name, shape, message):
    with pytest.raises(fltrain.UsageError, match=message):
        create(f"torchvision:{name}", shape, 10, 0)


def test_without_torchvision_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.delitem(sys.modules, "torchvision.models", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install torchvision"):
        create("torchvision:resnet18", (3, 32, 32), 10, 0)


def test_a_name_of_torchvision_is_no_code_of_ones_own():
    assert [is_own_code(name) for name in ("torchvision:resnet18", "cnn")] == [False, False]
    assert [is_own_code(name) for name in ("mine.py:net", "torchvision.models:vgg11")] == [True] * 2
    assert digest_own_code(["torchvision:resnet18", "cnn"]) == {}
