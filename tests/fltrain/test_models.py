"""Models: how large, which one for which data, from which seed, and what their stages give."""

import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fltrain.models import MODELS, Staged, create, default
from fltrain.task import ModelTask

# (1 x 25 + 1) x 6 + (6 x 25 + 1) x 16 + (256 + 1) x 120 + (120 + 1) x 84 + (84 + 1) x 10 = 156 + 2,416 + 30,840 + 10,164 + 850
SIZES = [
    ("cnn", (1, 28, 28), 10, 44_426),
    ("cnn", (3, 32, 32), 10, 62_006),
    ("mlp", (123,), 2, 4_650),  # a9a
    ("mlp", (54,), 2, 2_442),  # covtype
    ("mlp", (47_236,), 2, 1_512_266),  # rcv1
    ("linear", (3,), 2, 8),  # FCUBE
    ("hidden200", (1, 8, 8), 10, 65 * 200 + 201 * 10),
]
SMALL = [(name, shape, n_classes) for name, shape, n_classes, _ in SIZES if shape != (47_236,)]


def n_parameters(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(("name", "shape", "n_classes", "size"), SIZES)
def test_each_model_has_the_published_number_of_parameters(name, shape, n_classes, size):
    assert n_parameters(create(name, shape, n_classes, 0)) == size


@pytest.mark.parametrize(("name", "shape", "n_classes"), SMALL)
def test_a_model_maps_a_batch_to_logits(name, shape, n_classes):
    assert create(name, shape, n_classes, 0)(torch.rand(5, *shape)).shape == (5, n_classes)


def test_every_model_of_the_folder_is_tested_here():
    assert {name for name, *_ in SIZES} == set(MODELS.names())


@pytest.mark.parametrize(
    ("source", "shape", "name"),
    [
        ("mnist", (1, 28, 28), "cnn"),
        ("array", (3, 32, 32), "cnn"),
        ("digits", (1, 8, 8), "hidden200"),
        ("array", (3, 64, 64), "hidden200"),
        ("array", (1, 28, 32), "hidden200"),
        ("array", (123,), "mlp"),
        ("fcube", (3,), "linear"),
    ],
)
def test_data_gets_the_papers_model_for_its_kind(source, shape, name):
    assert default(source, shape) == name


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 32), (3, 64, 64), (784,)])
def test_the_cnn_refuses_other_images_and_says_what_to_take(shape):
    with pytest.raises(ValueError, match=re.escape(str(shape)) + ".*hidden200"):
        create("cnn", shape, 10, 0)


def test_an_unknown_model_names_the_nearest():
    with pytest.raises(ValueError, match=r"unknown model 'cn'.*did you mean 'cnn'"):
        create("cn", (1, 28, 28), 10, 0)


@pytest.mark.parametrize(("name", "shape", "n_classes"), SMALL)
def test_the_seed_gives_the_weights_and_the_global_generator_stays(name, shape, n_classes, same):
    before = torch.get_rng_state()
    a, b, c = (create(name, shape, n_classes, seed).state_dict() for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)  # where the global generator stands does not matter
    assert same(dict(a), dict(create(name, shape, n_classes, 5).state_dict()))
    assert same(dict(a), dict(b))
    assert not same(dict(a), dict(c))


def test_the_mlp_starts_from_small_normal_weights_and_biases_of_a_tenth():
    weights = dict(create("mlp", (2000,), 2, 0).named_parameters())
    first = weights[
        "fc1.1.weight"
    ].detach()  # 64,000 draws of N(0, 0.1): the mean is within 4 / sqrt(64,000), the deviation within 4 / sqrt(128,000) of it
    assert abs(float(first.mean())) < 0.1 * 4 / 64_000**0.5
    assert abs(float(first.std()) / 0.1 - 1) < 4 / 128_000**0.5
    assert all(torch.equal(p, torch.full_like(p, 0.1)) for name, p in weights.items() if name.endswith("bias"))


def test_a_function_that_returns_no_module_is_refused(tmp_path):
    (tmp_path / "mine.py").write_text("def nothing(shape, n_classes):\n    return 3\n")
    with pytest.raises(ValueError, match=r"returned 3; a torch\.nn.Module is needed"):
        create(f"{tmp_path / 'mine.py'}:nothing", (3,), 2, 0)


@pytest.mark.parametrize(("name", "shape", "n_classes"), SMALL)
def test_stages_feed_each_other_and_the_last_gives_the_logits(name, shape, n_classes):
    model, x = create(name, shape, n_classes, 0), torch.rand(4, *shape)
    taps = model(x, taps=True)
    assert len(taps) == len(list(model.children()))
    assert torch.equal(taps[-1], model(x))
    for i, (stage, out) in enumerate(zip(model.children(), taps, strict=True)):
        assert torch.equal(out, stage(x if i == 0 else taps[i - 1]))
        assert torch.equal(model(x, upto=i), out)
        assert len(model(x, upto=i, taps=True)) == i + 1


def test_a_stage_of_a_hidden_layer_ends_with_its_activation():
    taps = create("cnn", (1, 28, 28), 10, 0)(torch.rand(4, 1, 28, 28), taps=True)
    assert [tuple(t.shape[1:]) for t in taps] == [(6, 12, 12), (16, 4, 4), (120,), (84,), (10,)]
    assert all(float(t.detach().min()) >= 0 for t in taps[:-1])
    assert float(taps[-1].detach().min()) < 0


def gradients(model, loss):
    return dict(zip(dict(model.named_parameters()), torch.autograd.grad(loss, list(model.parameters()), allow_unused=True), strict=True))


@pytest.mark.parametrize("last", range(5))
def test_detached_stages_keep_the_gradient_out_of_the_earlier_ones(last):
    model, x = create("cnn", (1, 28, 28), 10, 0), torch.rand(4, 1, 28, 28)
    attached, detached = (model(x, upto=last, detach=detach) for detach in (False, True))
    assert torch.equal(attached, detached)
    stage = list(dict(model.named_children()))[last]
    reached = {name.split(".")[0] for name, g in gradients(model, detached.sum()).items() if g is not None}
    assert reached == {stage}
    reached = {name.split(".")[0] for name, g in gradients(model, attached.sum()).items() if g is not None}
    assert reached == set(list(dict(model.named_children()))[: last + 1])


def test_kinds_name_what_each_parameter_is():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

    model = Staged(a=nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), Odd()), b=nn.Linear(2, 3))
    kinds = {"a.0.weight": "conv", "a.0.bias": "bias", "a.1.weight": "norm", "a.1.bias": "norm", "a.3.scale": "other"}
    assert ModelTask(model).kinds == kinds | {"b.weight": "linear", "b.bias": "bias"}
    assert list(ModelTask(model).kinds) == list(dict(model.named_parameters()))
    assert ModelTask(nn.Linear(2, 3)).kinds == {"weight": "linear", "bias": "bias"}


def test_a_task_of_a_plain_module_has_one_stage_and_one_of_stages_has_the_features_before_the_logits():
    x = torch.rand(4, 6)
    plain, staged = nn.Linear(6, 3), create("mlp", (6,), 3, 0)
    out = ModelTask(plain).forward(dict(plain.named_parameters()), {}, x, train=True)
    assert len(out.taps) == 1
    assert torch.equal(out.logits, plain(x))
    out = ModelTask(staged).forward(dict(staged.named_parameters()), {}, x, train=True)
    assert out.features.shape == (4, 8)
    assert torch.equal(out.logits, F.linear(out.features, staged.out.weight, staged.out.bias))
