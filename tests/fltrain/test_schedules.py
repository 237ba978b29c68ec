"""Schedules of the learning rate: each is torch's own, and one that would do nothing, or end at 0, is refused."""

import pytest
import torch
from torch.optim import lr_scheduler

import fltrain
from fltrain import Settings
from fltrain.optimizers import OPTIMIZERS
from fltrain.schedules import SCHEDULES

ROUNDS, STEPS = 12, 5

# (options, torch's scheduler over so many moments a round)
THEIRS = {
    "constant": ({}, lambda sgd, per: lr_scheduler.LambdaLR(sgd, lambda t: 1.0)),
    "steps": (
        {"lr_drops": (3, 7), "lr_factor": 0.5},
        lambda sgd, per: lr_scheduler.MultiStepLR(sgd, [3 * per, 7 * per], gamma=0.5),
    ),
    "exponential": (
        {"lr_decay": 0.9},
        lambda sgd, per: lr_scheduler.ExponentialLR(sgd, gamma=0.9 ** (1 / per)),
    ),
    "cosine": (
        {"lr_end": 0.01},
        lambda sgd, per: lr_scheduler.CosineAnnealingLR(sgd, T_max=ROUNDS * per, eta_min=0.01),
    ),
    "linear": (
        {"lr_end": 0.02},
        lambda sgd, per: lr_scheduler.LinearLR(sgd, 1.0, 0.2, total_iters=ROUNDS * per),
    ),
}


def follow(make, per_round, rounds=ROUNDS):
    """The rates of torch's scheduler, which is stepped `per_round` times a round."""
    sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler, rates = make(sgd, per_round), []
    for _ in range(rounds * per_round):
        rates.append(sgd.param_groups[0]["lr"])
        sgd.step()
        scheduler.step()
    return rates


def test_every_schedule_is_compared_with_torch():
    assert set(THEIRS) == set(SCHEDULES.names())


@pytest.mark.parametrize("name", THEIRS)
def test_over_rounds_it_is_torchs_scheduler_stepped_after_each_round(name):
    options, make = THEIRS[name]
    ours = Settings(rounds=ROUNDS, lr=0.1, lr_schedule=name, **options)
    rates = [ours.lr_at(round) for round in range(1, ROUNDS + 1)]
    assert rates == pytest.approx(follow(make, 1), rel=1e-12)
    assert [ours.lr_at(round, 0.7) for round in range(1, ROUNDS + 1)] == rates


@pytest.mark.parametrize("name", THEIRS)
def test_over_steps_it_is_torchs_scheduler_stepped_after_each_batch(name):
    options, make = THEIRS[name]
    ours = Settings(rounds=ROUNDS, lr=0.1, lr_schedule=name, lr_over="steps", **options)
    rates = [ours.lr_at(r, step / STEPS) for r in range(1, ROUNDS + 1) for step in range(STEPS)]
    assert rates == pytest.approx(follow(make, STEPS), rel=1e-12)


@pytest.mark.parametrize("per_round", [1, STEPS])
def test_a_warm_up_is_torchs_linear_one_and_the_schedule_comes_after_it(per_round):
    """LinearLR from 1 / (warmup + 1), then the cosine over the other rounds."""

    def make(sgd, per):
        rise = lr_scheduler.LinearLR(sgd, 1 / 4, 1.0, total_iters=3 * per)
        fall = lr_scheduler.CosineAnnealingLR(sgd, T_max=(ROUNDS - 3) * per)
        return lr_scheduler.SequentialLR(sgd, [rise, fall], milestones=[3 * per])

    over = "rounds" if per_round == 1 else "steps"
    ours = Settings(rounds=ROUNDS, lr=0.1, lr_schedule="cosine", warmup=3, lr_over=over)
    rates = [
        ours.lr_at(round, step / per_round)
        for round in range(1, ROUNDS + 1)
        for step in range(per_round)
    ]
    assert rates == pytest.approx(follow(make, per_round), rel=1e-12)


def test_rounds_of_drops_are_those_of_the_run_also_after_a_warm_up():
    ours = Settings(rounds=6, lr=0.1, lr_drops=(4,), warmup=2)
    assert [ours.lr_at(round) for round in range(3, 7)] == pytest.approx([0.1, 0.1, 0.01, 0.01])


def test_a_schedule_says_whether_a_longer_run_would_have_other_rates():
    """It is what its record says: the rates of the first rounds of 10 and of 20."""
    for name in SCHEDULES.names():
        options, _ = THEIRS[name]
        short, long = (Settings(rounds=n, lr=0.1, lr_schedule=name, **options) for n in (10, 20))
        differ = [short.lr_at(r) != long.lr_at(r) for r in range(1, 11)]
        assert any(differ) == SCHEDULES.record(name).depends_on_rounds, name


@pytest.mark.parametrize("over", ["rounds", "steps"])
def test_a_run_trains_as_torch_does_with_its_scheduler(table, dealt, train, over):
    """One party, two batches a round, SGD without momentum."""
    y = torch.from_numpy(table.labels)
    x = torch.from_numpy(table.features(slice(None)))
    options = {"rounds": 4, "lr": 0.2, "batch_size": 45, "seed": 3, "momentum": 0.0}
    options |= {"lr_schedule": "cosine", "lr_end": 0.02, "warmup": 1, "lr_over": over}
    done = train(dealt(table, [0] * 90), table, **options)
    module = fltrain.models.create("hidden200", (6,), 3, 3)
    settings = Settings(**options)
    for round in range(1, 5):
        key = fltrain.draws.key(3, "job", round, 0)
        order = fltrain.draws.order(key, 0, 90, torch.device("cpu"))
        for step, at in enumerate(order.split(45)):
            sgd = torch.optim.SGD(module.parameters(), lr=settings.lr_at(round, step / 2))
            torch.nn.functional.cross_entropy(module(x[at]), y[at]).backward()
            sgd.step()
            sgd.zero_grad()
    for name, weight in module.named_parameters():
        assert torch.equal(done.state.models[name][0], weight.detach()), name
    assert [m["lr"] for m in done.history] == [settings.lr_at(round) for round in range(1, 5)]


REFUSED = [
    ({"lr_schedule": "cosine", "lr_decay": 0.9}, "lr-decay is used by lr-schedule exponential, and that is cosine"),
    ({"lr_end": 0.001}, "lr-end is used by lr-schedule cosine and linear, and that is constant"),
    ({"lr_schedule": "linear", "lr_drops": (1,)}, "lr-drops is used by lr-schedule steps"),
    ({"lr_factor": 0.5}, "lr-factor is used by lr-schedule steps"),
    ({"lr_schedule": "linear", "lr_end": -0.1}, "lr-end is -0.1; it must be at least 0"),
    ({"lr_schedule": "linear", "lr_end": 0.2}, "lr-end is 0.2, above lr, 0.1"),
    ({"lr_schedule": "exponential", "lr_decay": 1e-300, "rounds": 3}, "learning rate of round 3 is 0.0"),
    ({"lr_schedule": "cosine", "warmup": 2}, "warmup is 2 rounds of 2; it must leave one after it"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_would_do_nothing_or_end_below_0_is_refused_before_the_run_starts(
    table, table_split, train, tmp_path, options, message
):
    with pytest.raises(fltrain.UsageError, match=message):
        train(table_split, table, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_what_a_preset_says_of_another_schedule_gives_way(table, table_split, train, tmp_path):
    """FedRL's preset drops the rate after rounds; who asks for a cosine has that alone."""
    gone = "lr-drops 40,80 of the preset fedrl gives way to what was asked for beside it"
    with pytest.warns(UserWarning, match=gone):
        done = train(
            table_split, table, preset="fedrl", lr_schedule="cosine", out=tmp_path / "run", rounds=1
        )
    settings = fltrain.RunFolder.open(tmp_path / "run").config["settings"]
    assert (settings["lr_schedule"], settings["lr_drops"]) == ("cosine", [])
    assert done.history[0]["lr"] == 0.1


def test_the_page_has_a_row_of_every_schedule_and_optimiser(project):
    page = (project / "docs" / "training.md").read_text()
    for name in [*SCHEDULES.names(), *OPTIMIZERS.names()]:
        assert f"\n| `{name}` |" in page, name
