"""FedNACA: the modulation, the expectation, the local rule written out, what it depends on and what not."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import niidpart
from fltrain import tree
from fltrain.algorithms import fednaca
from fltrain.algorithms.fednaca import choose_slots, levels, theta
from fltrain.draws import key, uniform
from fltrain.interface import Batch, Info, Local
from fltrain.models import Staged, create
from fltrain.tasks.model_task import ModelTask

SET = {"rounds": 3, "local_epochs": 2, "lr": 0.01, "momentum": 0.9, "fraction": 0.8}
LEVEL, MAX = 0.5, 1.2


def module():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Staged(
            a=nn.Sequential(nn.Linear(6, 5), nn.Sigmoid()),
            b=nn.Sequential(nn.Linear(5, 4, bias=False), nn.Sigmoid()),
            out=nn.Linear(4, 3),
        )


def begun(task, seed=0, shape=(6,)):
    """The state of round 0 and what a job of round 1 is given."""
    models = {n: p.detach().unsqueeze(0).clone() for n, p in task.module.named_parameters()}
    algorithm = fednaca()
    state = algorithm.init(
        task,
        Info(torch.ones(2), torch.ones(2, 3), torch.ones(2), shape, seed, 0.1),
        models,
        {},
        algorithm.hyper,
    )
    start = tree.index(models, 0)
    return state, Local(
        start,
        {},
        start,
        algorithm.plan(state, torch.tensor([0, 1]), 1, algorithm.hyper).shared,
        {},
        {},
        {},
        {},
        0,
    )


def batch(size=7, mask=None):
    x = torch.randn(size, 6, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    return Batch(x, torch.arange(size) % 3, mask, 0, 0)


@pytest.mark.parametrize(
    ("n", "expected"),
    [(0, 1), (1 / 8, 1.2), (1 / 4, 1), (1 / 2, 0), (3 / 4, -1), (7 / 8, -1.2), (1, -1)],
)
def test_theta_at_its_knots(n, expected):
    """With L = 1/2: N = 0, L/4, L/2, L, 3L/2, 7L/4, 2L."""
    assert float(theta(torch.tensor(n, dtype=torch.float64), LEVEL, MAX)) == pytest.approx(
        expected, abs=1e-15
    )


@pytest.mark.parametrize(("level", "height"), [(0.5, 1.2), (0.4, 1.5), (0.6, 1.0)])
def test_theta_is_the_four_pieces_of_the_paper_and_odd_about_l(level, height):
    n = torch.linspace(0, 2 * level, 1001, dtype=torch.float64)
    pieces = [
        height - (height - 1) * (4 * n - level) ** 2 / level**2,
        4 * (n - level) ** 2 / level**2,
        -4 * (n - level) ** 2 / level**2,
        (height - 1) * (4 * (2 * level - n) - level) ** 2 / level**2 - height,
    ]
    piece = (n > level / 2).long() + (n > level) + (n > 1.5 * level)
    assert (
        theta(n, level, height) - torch.stack(pieces)[piece, torch.arange(1001)]
    ).abs().max() < 1e-12
    assert (theta(n, level, height) + theta(n.flip(0), level, height)).abs().max() < 1e-12
    assert theta(n, level, height).diff().abs().max() < 0.01 * max(
        height, 1
    )  # no jump: the steepest slope is 4 / L, steps are L / 500


def test_the_expectation_of_ten_classes():
    assert choose_slots(10) == [18, 15, 13, 11, 9, 8, 7, 5, 3, 0]
    rows = levels(torch.eye(20, dtype=torch.float64))  # E itself, [10, 20]
    expected = np.zeros((10, 20))
    for k, a in enumerate([18, 15, 13, 11, 9, 8, 7, 5, 3, 0]):
        expected[k, [a, a + 1]] = 0.5
    assert rows.tolist() == expected.tolist()


@pytest.mark.parametrize("n_classes", [*range(2, 13), 15, 20, 26, 47, 62, 100, 200, 233])
def test_no_two_classes_have_one_expectation(n_classes):
    a = choose_slots(n_classes)
    assert len(set(a)) == n_classes
    assert (a[0], a[-1]) == (2 * n_classes - 2, 0)
    assert a == sorted(a, reverse=True)


@pytest.fixture
def three_weights(dealt):
    """h = s(u x), logits (v1 h, v2 h), u = v1 = v2 = 0; examples x = 2 and 4 of class 0, x = 1 of class 1, in one batch."""
    x, y = np.array([[2.0], [4.0], [1.0]], np.float32), np.array([0, 0, 1])
    data = niidpart.from_arrays(x, y, x, y)
    model = Staged(
        hidden=nn.Sequential(nn.Linear(1, 1, bias=False), nn.Sigmoid()),
        out=nn.Linear(1, 2, bias=False),
    )
    for p in model.parameters():
        nn.init.zeros_(p)
    return dealt(data, [0, 0, 0]), data, model


def with_modulators(change):
    """FedNACA with other matrices."""
    algorithm = fednaca()

    def init(task, info, models, buffers, hyper):
        state = algorithm.init(task, info, models, buffers, hyper)
        return replace(state, server=tree.map(change, state.server))

    return replace(algorithm, init=init)


def test_one_step_by_hand(three_weights, train):
    """K = 2: slots a = 2, 0, so class 0 has N = (L_2 + L_3) / 2, class 1 N = (L_0 + L_1) / 2.

    Lambda = (0.7, 0.8, 0.1, 0.15): N = 0.125 = L/4, theta 1.2, for class 0; N = 0.75 = 3L/2, theta -1, for class 1. All h = 1/2, h' = 1/4.
    Hidden: 1.2 x 1/4 x (2 + 4) - 1 x 1/4 x 1 = 1.8 - 0.25 = 1.55; u = 0 - 0.1 x 1.55 = -0.155.
    Output: s(0) - target is -1/2 or 1/2, so the loss is 1/4. Its gradient in a logit, a mean over 3 x 2: 2 (-+1/2) 1/4 / 6 = -+1/24, times
    h: -+1/48. v1: two examples of its class, one that is not: -1/48; v2: 1/48. v = (0.1 / 48, -0.1 / 48) = (0.0020833333, -0.0020833333).
    """
    split, data, model = three_weights
    algorithm = with_modulators(lambda matrix: torch.tensor([[0.7], [0.8], [0.1], [0.15]]))
    done = train(split, data, model=model, algorithm=algorithm, rounds=1, lr=0.1, momentum=0.0)
    assert done.state.models["hidden.0.weight"].item() == pytest.approx(-0.155, abs=1e-7)
    assert done.state.models["out.weight"].flatten().tolist() == pytest.approx(
        [0.1 / 48, -0.1 / 48], abs=1e-9
    )
    assert done.history[0]["train_loss"] == pytest.approx(0.25, abs=1e-9)


def test_the_rule_written_out(distance, certify):
    """sum_b theta_b s'(a_b) input_b^T in each hidden layer, the gradient of mean (s(logits) - onehot)^2 in the last; float64."""
    task = ModelTask(module().double())
    state, given = begun(task)
    b, w = batch(), given.params
    step = fednaca().direction(task, given, b)
    assert {k: tuple(v.shape) for k, v in state.server.items()} == {
        "stage0": (6, 5),
        "stage1": (6, 4),
    }
    expectation = torch.zeros(3, 6, dtype=torch.float64)
    for k, a in enumerate(choose_slots(3)):
        expectation[k, a] = expectation[k, a + 1] = 0.5

    def pull(matrix, h):
        return theta(expectation[b.y] @ matrix, LEVEL, MAX) * h * (1 - h)

    h1 = torch.sigmoid(b.x @ w["a.0.weight"].T + w["a.0.bias"])
    h2 = torch.sigmoid(h1 @ w["b.0.weight"].T)
    s = torch.sigmoid(h2 @ w["out.weight"].T + w["out.bias"])
    error = s - torch.eye(3, dtype=torch.float64)[b.y]
    last = 2 * error * s * (1 - s) / error.numel()
    first, second = pull(state.server["stage0"], h1), pull(state.server["stage1"], h2)
    expected = {
        "a.0.weight": first.T @ b.x,
        "a.0.bias": first.sum(0),
        "b.0.weight": second.T @ h1,
        "out.weight": last.T @ h2,
        "out.bias": last.sum(0),
    }
    assert expected.keys() == step.grad.keys()
    certify("fednaca", distance(step.grad, {name: expected[name] for name in step.grad}))
    assert float(step.loss) == pytest.approx(float(error.square().mean()), abs=1e-14)


def test_padding_counts_for_nothing(distance):
    task = ModelTask(module().double())
    _, given = begun(task)
    padded = fednaca().direction(task, given, batch(9, torch.arange(9) < 5))
    bare = fednaca().direction(task, given, Batch(batch(9).x[:5], batch(9).y[:5], None, 0, 0))
    assert distance(padded.grad, bare.grad) < 1e-12
    assert float(padded.loss) == pytest.approx(float(bare.loss), abs=1e-14)


def test_at_the_level_where_theta_is_0_hidden_weights_stay_bit_for_bit(table, table_split, train):
    algorithm = with_modulators(lambda matrix: torch.full_like(matrix, LEVEL))
    done = train(table_split, table, model=module(), algorithm=algorithm, **SET)
    for name, before in module().named_parameters():
        assert torch.equal(done.state.models[name][0], before.detach()) == (
            not name.startswith("out")
        )


def test_a_hidden_stage_does_not_depend_on_what_comes_after_it():
    task = ModelTask(module().double())
    _, given = begun(task)
    step = fednaca().direction(task, given, batch())
    for later, same in (("out", ("a", "b")), ("b", ("a",))):
        other = {n: w + 1 if n.startswith(later) else w for n, w in given.params.items()}
        changed = fednaca().direction(task, given._replace(params=other), batch())
        for name in step.grad:
            assert torch.equal(step.grad[name], changed.grad[name]) == name.startswith(same)


def test_modulators_are_a_function_of_the_seed_and_are_never_trained(
    table, table_split, train, same
):
    first, last, other = (
        train(table_split, table, model=module(), algorithm="fednaca", **SET | o)
        for o in ({"rounds": 1}, {}, {"seed": 1})
    )
    assert same(first.state.server, last.state.server)
    assert not same(first.state.models, last.state.models)
    assert not any(
        torch.equal(a, b)
        for a, b in zip(
            tree.leaves(first.state.server), tree.leaves(other.state.server), strict=True
        )
    )
    state, _ = begun(ModelTask(module()), seed=0)
    assert same(
        state.server, first.state.server
    )  # whatever the model's weights and the parties are
    assert last.state.models.keys() == dict(module().named_parameters()).keys()


def test_modulators_are_not_sent(table, table_split, train):
    moved = [
        [
            m["bytes_table4"]
            for m in train(table_split, table, model=module(), algorithm=a, **SET).history
        ]
        for a in ("fednaca", "fedavg")
    ]
    assert moved[0] == moved[1]


def test_a_stage_of_a_convolution_has_a_modulator_for_each_pixel():
    task = ModelTask(create("naca-cnn", (1, 28, 28), 10, 0))
    state, _ = begun(task, shape=(1, 28, 28))
    shapes = {k: tuple(v.shape) for k, v in state.server.items()}
    assert shapes == {"stage0": (20, 64, 28, 28), "stage1": (20, 128, 14, 14), "stage2": (20, 1000)}


def test_a_round_of_the_networks_that_it_is_made_for(images, dealt, train):
    split = dealt(images, [i % 2 for i in range(50)])
    for name in ("twonn", "naca-cnn"):
        done = train(
            split, images, model=name, algorithm="fednaca", rounds=1, batch_size=25, lr=5e-4
        )
        start = create(name, (1, 28, 28), 10, 0)
        assert not any(
            torch.equal(done.state.models[n][0], p.detach()) for n, p in start.named_parameters()
        )
        assert all(leaf.isfinite().all() for leaf in tree.leaves(done.state.models))


def test_sigmoid_networks_learn_by_it(table, table_split, train):
    done = train(table_split, table, model="twonn", algorithm="fednaca", rounds=20, lr=0.05)
    assert done.history[-1]["train_loss"] < done.history[0]["train_loss"] - 0.05
    assert done.history[-1]["test_accuracy"] > 0.6  # a third by chance


def test_what_cannot_be_done_is_said(table, table_split, train):
    with pytest.raises(ValueError, match=r"level is 0\.0; it must be above 0"):
        fednaca(level=0.0)
    with pytest.raises(ValueError, match=r"theta_max is 0\.9; it must be at least 1"):
        fednaca(theta_max=0.9)
    with pytest.raises(
        ValueError, match="declares 1 stages in all; choose --model twonn or naca-cnn"
    ):
        train(table_split, table, model="linear", algorithm="fednaca")
    hidden = nn.Sequential(nn.Linear(6, 4), nn.Sigmoid(), nn.Linear(4, 3))
    assert train(table_split, table, model=hidden, algorithm="fednaca", rounds=1).history
    hidden.forward = lambda x: nn.Sequential.forward(hidden, x)
    with pytest.raises(ValueError, match="declares 0 stages"):
        train(table_split, table, model=hidden, algorithm="fednaca")
    with pytest.raises(ValueError, match="with 234 classes"):
        choose_slots(234)
    with pytest.raises(ValueError, match="two classes or more"):
        choose_slots(1)


def test_uniform_draws():
    k = key(5, "uniform")
    drawn = uniform(k, 100_003, torch.device("cpu"))
    assert drawn.dtype == torch.float32
    assert torch.equal(drawn[:5], uniform(k, 5, torch.device("cpu")))
    assert 0 <= float(drawn.min()) < 1e-3
    assert 1 - 1e-3 < float(drawn.max()) < 1
    # mean 1/2 with a standard error of sqrt(1/12 / 100,003) = 0.00091; a tenth of them in each tenth, with one of 95: five of them at most
    assert float(drawn.double().mean()) == pytest.approx(0.5, abs=5 * 0.00091)
    assert (torch.histc(drawn, 10, 0, 1) - 10_000.3).abs().max() < 5 * 95
    assert abs(float(torch.corrcoef(torch.stack([drawn[:-1], drawn[1:]]))[0, 1])) < 5 / 100_000**0.5
    assert not torch.equal(drawn[:100], uniform(key(6, "uniform"), 100, torch.device("cpu")))


def test_a_model_without_sigmoids_is_refused_and_twonn_is_taken_where_none_is_asked_for(
    table, table_split, train
):
    with pytest.raises(
        ValueError,
        match=r"hidden stages that end in a sigmoid, and this model's go beyond 0\.\.1; choose --model twonn",
    ):
        train(table_split, table, algorithm="fednaca", model="hidden200")
    done = train(table_split, table, algorithm="fednaca", model=None, rounds=1)
    assert done.state.models["fc1.1.weight"].shape == (1, 1000, 6)
