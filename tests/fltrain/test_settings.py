"""Settings: what each one does to a run, and what it refuses."""

import inspect
import json
import re
import sys
import types
import typing
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from torch import nn

import fltrain
import niidpart
from fltrain import Settings, SettingValues, tree
from fltrain.settings import SETTINGS

ALL = slice(None)


@pytest.fixture
def batches_of(table, train):
    """batches_of(split, ...): (epoch, step, rows of the table) of every batch, in the order in which a run of FedAvg saw them; and the run."""

    def run(split, **options):
        base, seen = fltrain.algorithms.ALGORITHMS.find("fedavg")(), []
        rows = {tuple(row): i for i, row in enumerate(table.features(ALL).tolist())}

        def direction(task, local, batch):
            seen.append((batch.epoch, batch.step, [rows[tuple(row)] for row in batch.x.tolist()]))
            return base.direction(task, local, batch)

        done = train(split, table, algorithm=replace(base, direction=direction), **options)
        return seen, done

    return run


def test_a_default_is_as_its_check_would_leave_it():
    """So that it need not be checked in each of a plan's thousands of cells."""
    for name, option in SETTINGS.items():
        checked = option.check(name, option.default)
        assert (checked, type(checked)) == (option.default, type(option.default)), name


def test_defaults_are_those_of_the_paper():
    s = Settings()
    assert (
        s.rounds,
        s.local_epochs,
        s.batch_size,
        s.lr,
        s.momentum,
        s.weight_decay,
        s.fraction,
    ) == (50, 10, 64, 0.01, 0.9, 0.0, 1.0)


BAD = {
    "rounds": ([0, -1, 10**9], "at least 1 and at most 100000000"),
    "local_epochs": ([0, 10**9], "at least 1 and at most 100000000"),
    "local_steps": ([0, -5, 10**18], "at least 1 and at most 100000000"),
    "batch_size": ([0, 1 << 63], "at least 1 and at most 100000000"),
    "lr": ([0.0, -0.1, 1e300], "above 0 and at most 1e+30"),
    "lr_factor": ([0.0, 1.1], "above 0 and at most 1"),
    "lr_decay": ([0.0, 1.1], "above 0 and at most 1"),
    "lr_end": ([-0.1, 1e300], "at least 0 and at most 1e+30"),
    "warmup": ([-1, 10**9], "at least 0 and at most 100000000"),
    "lr_over": (["epochs", None], "one of rounds, steps"),
    "drift": (["yes", None], "one of none, whole, layers"),
    "accumulate": ([0, 10**9], "at least 1 and at most 100000000"),
    "stragglers": ([-0.1, 1.1], "at least 0 and at most 1"),
    "label_smoothing": ([-0.1, 1.0], "at least 0 and below 1"),
    "momentum": ([-0.1, 1.0], "at least 0 and below 1"),
    "eps": ([0.0, 1e300], "above 0 and at most 1e+30"),
    "clip_norm": ([0.0, -1.0], "above 0 and at most 1e+30"),
    "clip_value": ([0.0, -1.0], "above 0 and at most 1e+30"),
    "weight_decay": ([-1e-9, 1e300], "at least 0 and at most 1e+30"),
    "fraction": ([0.0, 1.01], "above 0 and at most 1"),
    "cohort_size": ([0, 10**9], "at least 1 and at most 100000000"),
    "candidates": ([0, 10**9], "at least 1 and at most 100000000"),
    "clusters": ([0, 10**9], "at least 1 and at most 100000000"),
    "unavailable": ([-0.1, 1.0], "at least 0 and below 1"),
    "new_parties": ([-0.2, 10**9], "at least 0 and at most 100000000"),
    "normalise": (
        ["mnist", None],
        "one of none, data, half, cifar10, cifar100, cifar10-fedcd, cifar10-map, mnist-map",
    ),
    "crop": ([-1, 10**6], "at least 0 and at most 4096"),
    "pad": (["mirror", None], "one of zero, reflect"),
    "rotate": ([-1.0, 180.5], "at least 0 and at most 180"),
    "seed": ([-1, 1 << 63], "at least 0 and at most 2**63-1"),
    "init_seed": ([-1, 1 << 63], "at least 0 and at most 2**63-1"),
    "eval_every": ([0, 1 << 63], "at least 1 and at most 100000000"),
    "checkpoint_every": ([0, 1 << 63], "at least 1 and at most 100000000"),
    "checkpoint_share": ([0.0, -0.1, 1.5], "above 0 and at most 1"),
    "finetune": ([-1, 10**9], "at least 0 and at most 100000000"),
    "calibrate": ([-1, 10**9], "at least 0 and at most 100000000"),
    "calibrate_epochs": ([0, 10**9], "at least 1 and at most 100000000"),
    "compress_by": (["layer", None], "one of model, tensor"),
    "topk_share": ([0.0, 1.1], "above 0 and at most 1"),
    "qsgd_levels": ([0, 1 << 25], "at least 1 and at most 16777216"),
    "stop_at": (["accuracy", "0.9"], "a metric and a value"),
    "keep": (["none", "every:0", "every:1.5", "every: 3", "last ", ""], "all, last, or every:N"),
    "device": (["gpu", "cuda:7", None], "one of auto, cpu, cuda"),
    "threads": ([0, 4097, 10**6], "at least 1 and at most 4096"),
    "engine": (["vmap", None], "one of auto, looped, processes, stacked, graph, native"),
    "workers": ([0, -1, 10**6], "at least 1 and at most 4096"),
    "memory": ([0.0, -1.0, 1e300], "above 0 and at most 1e+30"),
}
WRONG_TYPE = {
    "rounds": [1.5, "3", None, True],
    "local_epochs": [2.5, "2"],
    "local_steps": [2.5, "2"],
    "batch_size": [64.0, "64"],
    "lr": ["0.1", None, float("inf"), float("nan")],
    "momentum": ["0.9", None, float("nan")],
    "label_smoothing": ["0.1", None],
    "stop_at": [5, True],
    "finetune": [1.5, "2"],
    "calibrate": [1.5, "2", None],
    "calibrate_epochs": [1.5, "2", None],
    "compress": [5, True],
    "error_feedback": ["no", 2, None],
    "topk_share": ["0.1", None, float("nan")],
    "qsgd_levels": [1.5, "2", None],
    "weight_decay": ["0", None, float("inf")],
    "lr_drops": [5, ("a",), (1.5,)],
    "lr_schedule": [5, True],
    "lr_factor": ["0.1", None],
    "lr_decay": ["0.9", None],
    "lr_end": ["0", None],
    "warmup": [1.5, "1", None],
    "accumulate": [1.5, "2", None],
    "stragglers": ["0.5", None],
    "optimizer": [5, None],
    "nesterov": ["no", 2, None],
    "betas": [0.9, ("a", 0.9), (0.9, None)],
    "eps": ["0", None],
    "clip_norm": ["1", float("nan")],
    "clip_value": ["1", float("nan")],
    "keep_optimizer": ["no", 2, None],
    "fraction": ["1", None],
    "cohort": [5, None],
    "cohort_size": [2.5, "2"],
    "candidates": [2.5, "2"],
    "clusters": [2.5, "2", None],
    "unavailable": ["0.1", None],
    "new_parties": ["0.2", float("nan")],
    "shuffle": ["no", 2, None],
    "internals": ["yes", 2, None],
    "crop": [1.5, "4", None],
    "flip": ["no", 2, None],
    "rotate": ["15", None, float("nan")],
    "noisy_test": ["no", 2, None],
    "validation_only": ["no", 2, None],
    "seed": [1.5, "0", None],
    "init_seed": [1.5, "0"],
    "eval_every": [1.5, "1"],
    "checkpoint_every": [1.5, "1"],
    "checkpoint_share": ["0.1", None, float("nan")],
    "keep": [5, None, True],
    "threads": [1.5, "1"],
    "workers": [1.5, "1"],
    "memory": ["4", float("nan")],
    "tf32": ["no", 2, None],
    "bf16": ["no", 2, None],
    "compile": ["no", 2, None],
    "features_layer": [5, True],
    "models_by": [5, True],
}
WITHOUT_RANGE = {
    "cohort",
    "lr_drops",
    "lr_schedule",
    "optimizer",
    "nesterov",
    "betas",
    "keep_optimizer",
}
WITHOUT_RANGE |= {
    "features_layer",
    "models_by",
    "shuffle",
    "flip",
    "noisy_test",
    "tf32",
    "bf16",
    "compile",
}
WITHOUT_RANGE |= {"internals", "validation_only", "compress", "error_feedback"}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, (values, _) in BAD.items() for value in values],
    ids=str,
)
def test_a_setting_out_of_range_is_named_with_what_came_and_what_is_needed(name, value):
    with pytest.raises(
        ValueError,
        match=re.escape(f"{name.replace('_', '-')} is {value!r}; it must be {BAD[name][1]}"),
    ):
        Settings(**{name: value})


def test_each_of_several_rounds_is_checked():
    with pytest.raises(ValueError, match="lr-drops is 0; it must be at least 1"):
        Settings(lr_drops=(3, 0))


def test_a_schedule_or_an_optimiser_that_there_is_not_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"lr-schedule is 'cosin'; did you mean 'cosine'"):
        Settings(lr_schedule="cosin")
    with pytest.raises(ValueError, match=r"optimizer is 'adamm'; did you mean 'adam'"):
        Settings(optimizer="adamm")
    with pytest.raises(ValueError, match="there are: constant, cosine, exponential"):
        Settings(lr_schedule="mine.py:falls")  # code that an untrusted folder could name


def test_an_editor_is_shown_the_settings():
    """`run` takes the fields of Settings, with their types."""
    shown = typing.get_type_hints(SettingValues)
    assert shown == typing.get_type_hints(Settings)
    for function in (fltrain.run, fltrain.sweep):
        annotation = inspect.signature(function).parameters["settings"].annotation
        assert typing.get_args(annotation) == (SettingValues,)


def test_annotations_that_are_text_are_checked_too(tmp_path, monkeypatch):
    source = inspect.getsource(fltrain.settings).replace(
        '"""The', 'from __future__ import annotations\n"""The', 1
    )
    module = types.ModuleType("fltrain.later_settings")
    module.__package__ = "fltrain.settings"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, "settings.py", "exec"), vars(module))
    with pytest.raises(ValueError, match=r"lr is -1.0; it must be above 0"):
        module.Settings(lr=-1.0)


def test_the_package_lists_what_there_is():
    assert {"Settings", "run", "algorithms", "UsageError", "__version__"} <= set(dir(fltrain))
    assert all(hasattr(fltrain, name) for name in dir(fltrain))
    assert fltrain.UsageError is niidpart.errors.UsageError


@pytest.mark.parametrize("name", WRONG_TYPE)
def test_a_setting_of_another_type_is_named_too(name):
    for value in WRONG_TYPE[name]:
        with pytest.raises(ValueError, match=f"{name.replace('_', '[-_]')} is "):
            Settings(**{name: value})


def test_every_setting_is_tested_here():
    assert (
        set(BAD) | WITHOUT_RANGE
        == set(WRONG_TYPE)
        | {"device", "normalise", "pad", "engine", "lr_over", "drift", "compress_by"}
        == {f.name for f in fields(Settings)}
    )


def test_an_unknown_setting_names_the_nearest(table, table_split, train):
    with pytest.raises(ValueError, match=r"epochs.*local_epochs"):
        train(table_split, table, epochs=3)


def test_cuda_where_there_is_none_says_what_to_do(table, table_split, train):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(
        ValueError, match="device is cuda, and torch sees no CUDA device here; use --device cpu"
    ):
        train(table_split, table, device="cuda")


def test_the_same_seed_gives_the_same_run_and_another_another(
    table, table_split, train, same_state
):
    a, b, c = (train(table_split, table, seed=seed) for seed in (1, 1, 2))
    assert a.history == b.history
    assert same_state(a.state, b.state)
    assert not same_state(a.state, c.state)


def test_the_init_seed_moves_the_weights_and_the_seed_the_orders(
    table, table_split, train, same, batches_of
):
    weights = [fltrain.models.create("hidden200", (6,), 3, seed).state_dict() for seed in (0, 5)]
    slow = {"rounds": 1, "lr": 1e-30}  # too small to move a float32: what comes out is what went in
    assert same(
        tree.index(train(table_split, table, seed=5, init_seed=0, **slow).state.models, 0),
        dict(weights[0]),
    )
    assert same(
        tree.index(train(table_split, table, seed=5, **slow).state.models, 0), dict(weights[1])
    )
    orders = [
        batches_of(table_split, rounds=1, seed=seed, init_seed=init)[0]
        for seed, init in ((5, 0), (5, 1), (6, 0))
    ]
    assert orders[0] == orders[1] != orders[2]


def test_each_epoch_is_every_example_once_in_a_new_order(table_split, batches_of):
    seen, done = batches_of(table_split, rounds=2, local_epochs=2)
    sizes = table_split.train.sizes.tolist()
    assert done.history[0]["steps"] == sum(2 * -(-n // 8) for n in sizes)
    assert [s for _, s, _ in seen] == [
        s for _ in range(2) for n in sizes for s in range(2 * -(-n // 8))
    ]  # parties one after another
    epochs, batches = [], iter(seen)
    for party in [*range(5)] * 2:
        for epoch in range(2):
            part = [next(batches) for _ in range(-(-sizes[party] // 8))]
            assert {e for e, _, _ in part} == {epoch}
            assert [len(rows) for _, _, rows in part] == [8] * (sizes[party] // 8) + [
                sizes[party] % 8
            ] * (sizes[party] % 8 > 0)
            order = [row for _, _, rows in part for row in rows]
            assert sorted(order) == table_split.train.party(party).tolist()
            epochs.append(tuple(order))
    assert len(set(epochs)) == 20  # 5 parties, 2 rounds, 2 epochs


def test_without_shuffling_rows_come_in_one_order_that_is_not_ascending(table_split, batches_of):
    """Parties of 90 rows in classes 0, 1, 2, 0, ...: every epoch and round the same order, a permutation of the party's rows."""
    seen, _ = batches_of(table_split, rounds=2, local_epochs=2, shuffle=False, batch_size=4)
    flat = [row for _, _, rows in seen for row in rows]
    sizes = table_split.train.sizes.tolist()
    half = len(flat) // 2
    assert flat[:half] == flat[half:]
    for rows, size in zip(table_split.train, sizes, strict=True):
        first, second, flat = flat[:size], flat[size : 2 * size], flat[2 * size :]
        assert first == second
        assert sorted(first) == rows.tolist() != first


@pytest.mark.parametrize("steps", [1, 3, 7, 20])
def test_local_steps_count_instead_of_epochs(table, dealt, batches_of, steps):
    split = dealt(table, np.repeat([0, 1], [20, 70]))  # 3 and 9 batches an epoch
    seen, done = batches_of(split, rounds=1, local_steps=steps)
    assert done.history[0]["steps"] == 2 * steps
    assert [(e, s) for e, s, _ in seen] == [
        (s // per_epoch, s) for per_epoch in (3, 9) for s in range(steps)
    ]
    for party, per_epoch in enumerate((3, 9)):
        whole = [rows for _, _, rows in seen[party * steps : (party + 1) * steps]]
        for epoch in range(steps // per_epoch):
            rows = [
                row for batch in whole[epoch * per_epoch : (epoch + 1) * per_epoch] for row in batch
            ]
            assert sorted(rows) == split.train.party(party).tolist()


def test_the_learning_rate_falls_after_the_rounds_given(table, dealt, train):
    """One full batch a round of examples x = 1 of class 0 in a model w x without bias: w <- w - lr (softmax(w) - (1, 0))."""
    x, y = np.ones((4, 1), np.float32), np.array([0, 0, 0, 1])
    data = niidpart.from_arrays(x, y, x, y)
    model = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        model.weight.zero_()
    done = train(
        dealt(data, [0, 0, 0, -1]),
        data,
        model=model,
        rounds=6,
        lr=0.5,
        lr_drops=(1, 4),
        momentum=0.0,
    )
    rates = [0.5, 0.05, 0.05, 0.05, 0.005, 0.005]
    assert [m["lr"] for m in done.history] == pytest.approx(rates, rel=1e-12)
    w = np.zeros(2)
    for lr in rates:
        w -= lr * (np.exp(w) / np.exp(w).sum() - [1, 0])
    assert done.state.models["weight"][0, :, 0].tolist() == pytest.approx(w.tolist(), abs=1e-6)


def test_threads_hold_for_the_run_and_are_written_down(table, table_split, train, tmp_path):
    before, during = torch.get_num_threads(), []
    other = 2 if before == 1 else 1
    train(
        table_split,
        table,
        threads=other,
        out=tmp_path / "run",
        progress=lambda p: during.append(torch.get_num_threads()),
    )
    assert set(during) == {other}
    assert torch.get_num_threads() == before
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["threads"] == other
    with pytest.raises(RuntimeError, match="stop"):
        train(table_split, table, threads=other, progress=lambda p: stop())
    assert torch.get_num_threads() == before


def stop():
    raise RuntimeError("stop")
