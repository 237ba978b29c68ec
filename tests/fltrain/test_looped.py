"""The executor's promises to an algorithm: what a job is handed, and what becomes of what it returns."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import fltrain
from fltrain import tree
from fltrain.interface import Batch, Out, Plan, Served, Step
from fltrain.models import Staged, create
from fltrain.tasks.losses import cross_entropy
from fltrain.tasks.model_task import ModelTask
from niidpart.heterogeneity import map_beta

BASE = fltrain.algorithms.ALGORITHMS.find("fedavg")()
SIZES = [20, 30, 40]


@pytest.fixture
def split(table, dealt):
    return dealt(table, np.repeat([0, 1, 2], SIZES))


@pytest.fixture
def go(table, split, train):
    """go(changes of FedAvg, ...): one round of the three parties."""

    def run(settings=None, **changes):
        return train(
            split,
            table,
            algorithm=replace(BASE, **changes),
            **{"rounds": 1, "model": "linear", "engine": "looped"} | (settings or {}),
        )

    return run


def with_models(m):
    """An init with m copies of the model."""
    return lambda task, info, models, buffers, hyper: BASE.init(
        task, info, tree.repeat(tree.index(models, 0), m), buffers, hyper
    )


def counting(task, info, models, buffers, hyper):
    return replace(
        BASE.init(task, info, models, buffers, hyper), parties={"visits": torch.zeros(len(info.n))}
    )


def visit(task, local, work):
    return BASE.finish(task, local, work)[0], {"visits": local.own["visits"] + 1}


def test_what_a_party_returns_as_its_own_it_finds_again(go):
    assert go({"rounds": 3}, init=counting, finish=visit).state.parties["visits"].tolist() == [
        3,
        3,
        3,
    ]


def test_only_the_jobs_that_keep_leave_something_at_their_party(go):
    def plan(state, cohort, round, hyper):
        return replace(
            BASE.plan(state, cohort, round, hyper), keep=torch.tensor([True, False, True])
        )

    assert go(init=counting, finish=visit, plan=plan).state.parties["visits"].tolist() == [1, 0, 1]


def test_shared_goes_to_all_jobs_and_each_to_its_own(go):
    heard = []

    def plan(state, cohort, round, hyper):
        return replace(
            BASE.plan(state, cohort, round, hyper),
            shared={"c": torch.tensor([7.0])},
            each={"mu": {"k": torch.tensor([1.0, 2.0, 3.0])}},
        )

    def begin(task, local):
        heard.append((local.shared["c"].tolist(), float(local.each["mu"]["k"])))
        return local

    go(plan=plan, begin=begin)
    assert heard == [([7.0], 1.0), ([7.0], 2.0), ([7.0], 3.0)]


def test_each_and_keep_stay_with_their_job_when_a_party_without_examples_is_left_out(
    table, dealt, train
):
    heard = []

    def plan(state, cohort, round, hyper):
        return replace(
            BASE.plan(state, cohort, round, hyper),
            keep=torch.tensor([True, True, False]),
            each={"k": torch.tensor([1.0, 2.0, 3.0])},
        )

    def begin(task, local):
        heard.append(float(local.each["k"]))
        return local

    split = dealt(table, np.repeat([1, 2], 45), n_parties=3)
    done = train(
        split,
        table,
        algorithm=replace(BASE, init=counting, plan=plan, begin=begin, finish=visit),
        rounds=1,
    )
    assert heard == [2.0, 3.0]
    assert done.state.parties["visits"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("weight", "shares"), [(None, [2 / 9, 3 / 9, 4 / 9]), ([1.0, 1.0, 2.0], [0.25, 0.25, 0.5])]
)
def test_a_job_knows_what_it_did_and_how_much_it_counts(go, weight, shares):
    done = []

    def plan(state, cohort, round, hyper):
        return replace(
            BASE.plan(state, cohort, round, hyper),
            weight=None if weight is None else torch.tensor(weight, dtype=torch.float64),
        )

    def finish(task, local, work):
        done.append((work.steps, work.n, work.lr, work.momentum, work.share))
        return BASE.finish(task, local, work)

    go({"batch_size": 8, "local_epochs": 2, "lr": 0.25, "momentum": 0.5}, plan=plan, finish=finish)
    assert [d[:4] for d in done] == [
        (2 * steps, n, 0.25, 0.5) for steps, n in zip((3, 4, 5), SIZES, strict=True)
    ]
    assert [d[4] for d in done] == pytest.approx(shares, abs=1e-15)


def test_uploads_are_summed_for_each_model_apart_and_a_model_that_nobody_trained_stays(go, same):
    """Jobs (party, model): (0, 0), (1, 2), (2, 2); model 1 has none. Shares are within a model: 1; 3/7 and 4/7."""
    plan = Plan(party=torch.tensor([0, 1, 2]), model=torch.tensor([0, 2, 2]))
    many = go(init=with_models(3), plan=lambda *_: plan).state.models
    solo = fltrain.algorithms.ALGORITHMS.find("solo")()
    locals_ = go(
        **{f: getattr(solo, f) for f in ("init", "begin", "finish", "aggregate", "serve")}
    ).state.parties["params"]
    assert same(tree.index(many, 0), tree.index(locals_, 0))
    assert same(
        tree.index(many, 1),
        {n: p.detach() for n, p in create("linear", (6,), 3, 0).named_parameters()},
    )
    expected = tree.map(lambda y: (3 / 7 * y[1].double() + 4 / 7 * y[2].double()).float(), locals_)
    assert all(
        torch.allclose(a, b, rtol=0, atol=1e-7)
        for a, b in zip(tree.leaves(tree.index(many, 2)), tree.leaves(expected), strict=True)
    )


def test_a_party_may_train_several_models_in_a_round(go, same):
    plan = Plan(party=torch.tensor([1, 1]), model=torch.tensor([0, 1]))
    done = go(init=with_models(2), plan=lambda *_: plan)
    assert done.history[0]["jobs"] == 2
    assert same(
        tree.index(done.state.models, 0), tree.index(done.state.models, 1)
    )  # equal starts, equal orders


def constant(grad, after):
    """A direction that is the same in every step."""

    def direction(task, local, batch):
        step = task.grad(local, batch)
        return step._replace(
            grad=tree.map(lambda g: torch.full_like(g, grad), step.grad),
            after=tree.map(lambda g: torch.full_like(g, after), step.grad),
        )

    return direction


@pytest.mark.parametrize(
    ("grad", "after", "moved"),
    # four steps of lr 0.5 with momentum 0.5: velocities of a gradient of 1 are 1, 3/2, 7/4, 15/8, together 49/8; `after` has none
    [(1.0, 0.0, 0.5 * 49 / 8), (0.0, 1.0, 0.5 * 4), (1.0, -2.0, 0.5 * (49 / 8 - 8))],
)
def test_after_is_added_behind_the_momentum(go, grad, after, moved):
    done = go({"local_steps": 4, "lr": 0.5, "momentum": 0.5}, direction=constant(grad, after))
    start = {n: p.detach() for n, p in create("linear", (6,), 3, 0).named_parameters()}
    for a, b in zip(tree.leaves(tree.index(done.state.models, 0)), start.values(), strict=True):
        assert torch.allclose(a, b - moved, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("decay", "factor"), [("executor", 0.9**4), ("algorithm", 1.0)])
def test_weight_decay_is_the_executors_unless_the_algorithm_asks_for_it(go, decay, factor):
    told = []

    def begin(task, local):
        told.append(local.hyper.get("weight_decay"))
        return local

    settings = {
        "local_steps": 4,
        "lr": 0.5,
        "momentum": 0.0,
        "weight_decay": 0.2,
    }  # w <- w - 0.5 x 0.2 w, four times
    done = go(settings, direction=constant(0.0, 0.0), begin=begin, decay=decay)
    start = {n: p.detach() for n, p in create("linear", (6,), 3, 0).named_parameters()}
    for a, b in zip(tree.leaves(tree.index(done.state.models, 0)), start.values(), strict=True):
        assert torch.allclose(a, factor * b, rtol=1e-6, atol=0)
    assert told == [0.2 if decay == "algorithm" else None] * 3


def test_what_is_carried_lasts_for_one_job(go):
    seen = []

    def direction(task, local, batch):
        seen.append(local.carry.get("n", 0))
        return task.grad(local, batch)._replace(carry={"n": local.carry.get("n", 0) + 1})

    go({"local_steps": 3, "rounds": 2}, direction=direction)
    assert seen == [0, 1, 2] * 6


def test_a_job_keeps_what_it_started_from_while_it_trains(go, same):
    compared = []

    def finish(task, local, work):
        start = {n: p.detach() for n, p in create("linear", (6,), 3, 0).named_parameters()}
        compared.append((same(local.start, start), same(local.params, start)))
        return BASE.finish(task, local, work)

    go(finish=finish)
    assert compared == [(True, False)] * 3


def test_the_full_gradient_is_that_of_all_examples_of_the_party_at_once(go, table, split):
    gradients = []

    def begin(task, local):
        gradients.append(task.full_grad(local))
        return local

    go({"model": "mlp", "batch_size": 4}, begin=begin)
    for party, gradient in enumerate(gradients):
        model, rows = create("mlp", (6,), 3, 0), split.train.party(party)
        loss = F.cross_entropy(
            model(torch.from_numpy(table.features(rows))), torch.from_numpy(table.labels[rows])
        )
        for name, g in zip(
            gradient, torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            assert torch.allclose(gradient[name], g, rtol=1e-5, atol=1e-8)


def test_an_extra_loss_adds_its_gradient_and_its_value(go):
    """extra = 3 x the sum of all weights: a gradient of 3 everywhere besides."""
    difference = []

    def direction(task, local, batch):
        plain = task.grad(local, batch)
        more = task.grad(
            local, batch, extra=lambda params, out: 3 * sum(p.sum() for p in params.values())
        )
        difference.append(
            max(
                float((a - b - 3).abs().max())
                for a, b in zip(more.grad.values(), plain.grad.values(), strict=True)
            )
        )
        total = 3 * sum(float(p.sum()) for p in local.params.values())
        assert float(more.loss - plain.loss) == pytest.approx(total, abs=1e-5)
        return plain

    go(direction=direction)
    assert max(difference) < 1e-5


def test_padding_does_not_count_in_the_loss():
    logits, y = (
        torch.randn(5, 3, generator=torch.Generator().manual_seed(0)),
        torch.tensor([0, 2, 1, 0, 0]),
    )
    mask = torch.tensor([True, True, True, False, False])
    out = Out(logits, logits, [logits], {})
    assert float(cross_entropy(out, Batch(logits, y, mask, 0, 0))) == pytest.approx(
        float(F.cross_entropy(logits[:3], y[:3])), rel=1e-6
    )
    assert torch.equal(cross_entropy(out, Batch(logits, y, None, 0, 0)), F.cross_entropy(logits, y))


def test_any_loss_will_do():
    """A quadratic 1/2 (w - 3)^2 in the place of model and data: its gradient at w = 1 is -2."""
    module = torch.nn.Linear(1, 1, bias=False)
    task = ModelTask(module, loss=lambda out, batch: ((out.logits - 3) ** 2).mean() / 2)
    local = fltrain.interface.Local({"weight": torch.ones(1, 1)}, {}, {}, {}, {}, {}, {}, {}, 0)
    step = task.grad(local, Batch(torch.ones(1, 1), torch.zeros(1), None, 0, 0))
    assert isinstance(step, Step)
    assert (float(step.grad["weight"]), float(step.loss)) == (-2.0, 2.0)


def test_jobs_run_by_party_and_model_in_whatever_order_they_are_named(go):
    ran = []

    def plan(state, cohort, round, hyper):
        party, model = torch.tensor([2, 0, 1, 0, 2]), torch.tensor([1, 1, 0, 0, 0])
        return Plan(
            party,
            model,
            keep=torch.tensor([True, False, True, True, False]),
            each={"pair": torch.stack([party, model], 1)},
        )

    def finish(task, local, work):
        ran.append((*local.each["pair"].tolist(), work.first))
        return visit(task, local, work)

    done = go(
        init=lambda *a: replace(with_models(2)(*a), parties={"visits": torch.zeros(3)}),
        plan=plan,
        finish=finish,
    )
    assert ran == [
        (0, 0, 1.0),
        (0, 1, 1.0),
        (1, 0, 0.0),
        (2, 0, 0.0),
        (2, 1, 0.0),
    ]  # first: of the jobs that train the same model
    assert done.state.parties["visits"].tolist() == [1, 1, 1]


def test_a_job_without_weight_trains_and_counts_for_nothing(go, same):
    """Party 1 of weight 0: the mean and the loss are those of the other two, and its model does not travel."""

    def weightless(state, cohort, round, hyper):
        return replace(
            BASE.plan(state, cohort, round, hyper),
            weight=torch.tensor([20.0, 0.0, 40.0], dtype=torch.float64),
        )

    def without(state, cohort, round, hyper):
        return Plan(cohort[[0, 2]], torch.zeros(2, dtype=torch.int64))

    three, two = go(plan=weightless), go(plan=without)
    assert same(three.state.models, two.state.models)
    assert three.history[0]["train_loss"] == two.history[0]["train_loss"]
    assert three.history[0]["bytes_up"] == two.history[0]["bytes_up"] > 0
    assert three.history[0]["jobs"] == 3


def test_an_algorithm_fixes_the_settings_that_it_cannot_do_without(table, split, train):
    told = []

    def finish(task, local, work):
        told.append((work.momentum, work.lr))
        return BASE.finish(task, local, work)

    algorithm = replace(BASE, settings={"momentum": 0.0}, finish=finish)
    train(split, table, algorithm=algorithm, rounds=1, model="linear", lr=0.5)
    assert told == [(0.0, 0.5)] * 3
    with pytest.raises(
        ValueError, match=r"fedavg needs momentum 0\.0, 0\.9 was asked for; leave it out"
    ):
        train(split, table, algorithm=algorithm, momentum=0.9)


def test_an_algorithm_may_train_another_model_than_the_one_asked_for(go, same):
    def wider(module, hyper):
        return Staged(first=torch.nn.Linear(6, 4), out=torch.nn.Linear(4, 3))

    before = torch.get_rng_state()
    a, b, c = (go({"init_seed": seed, "rounds": 1}, adapt=wider).state for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert a.models["first.weight"].shape == (1, 4, 6)
    assert same(a.models, b.models)
    assert not same(a.models, c.models)


def test_models_of_the_parties_own_are_evaluated_beside_those_served(go):
    """Personal models that always say class 2: right for a third of the test set."""

    def personal(state, hyper):
        models = {
            "out.1.weight": torch.zeros(3, 3, 6),
            "out.1.bias": torch.tensor([0.0, 0.0, 1.0]).repeat(3, 1),
        }
        return Served(models, {}, torch.arange(3))

    metrics = go(personal=personal).history[-1]
    assert metrics["personal_test_accuracy"] == pytest.approx(
        13 / 40
    )  # classes 0, 1, 2, 0, ... of 40
    assert metrics["test_accuracy"] != metrics["personal_test_accuracy"]


def test_the_server_knows_the_parties_the_shape_and_the_seed(go, table, split):
    told = []

    def init(task, info, models, buffers, hyper):
        told.append(info)
        return BASE.init(task, info, models, buffers, hyper)

    go({"seed": 7}, init=init)
    assert (told[0].n.tolist(), told[0].shape, told[0].seed) == (SIZES, (6,), 7)
    assert np.array_equal(told[0].beta.numpy(), map_beta(split.train.counts))


def test_a_batch_of_one_example_in_batch_norm_is_explained(table, dealt, train):
    model = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.BatchNorm1d(3))
    with pytest.raises(
        ValueError, match="batch norm cannot train on a batch of one example; choose a --batch-size"
    ):
        train(dealt(table, np.zeros(9, int).tolist() + [-1] * 81), table, model=model)


def test_a_server_that_leaves_the_finite_numbers_leaves_the_parties_as_they_were(
    table, split, train, same
):
    def aggregate(state, plan, total, hyper):
        mean = BASE.aggregate(state, plan, total, hyper)
        return (
            replace(mean, models=tree.map(lambda w: w * float("inf"), mean.models))
            if int(state.parties["visits"].max()) == 2
            else mean
        )

    algorithm = replace(BASE, name="leaps", init=counting, finish=visit, aggregate=aggregate)
    seen = []

    def plan(state, cohort, round, hyper):
        seen.append(state)
        return BASE.plan(state, cohort, round, hyper)

    with pytest.raises(
        fltrain.Diverged, match="round 2: the models are not finite after aggregation"
    ):
        train(split, table, algorithm=replace(algorithm, plan=plan), rounds=3, model="linear")
    assert seen[-1].parties["visits"].tolist() == [1, 1, 1]
