"""`run` and `resume`: what they take, what every setting does, and what they leave as it was."""

import json
import random
import re
import shutil
from dataclasses import astuple, replace

import numpy as np
import pytest
import torch
from torch import nn

import fltrain
import niidpart
from fltrain import RunError

OWN = """
import torch
from dataclasses import astuple, replace
from torch import nn
from fltrain.algorithms import fedavg

def lazy(share: float = 0.5):
    return fedavg(server_lr=share)

def tiny(shape, n_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(torch.tensor(shape).prod()), n_classes))

def nothing():
    return 3
"""
ALL = slice(None)


@pytest.fixture
def own(tmp_path):
    """own(function): the name of a function in a file of the user's own."""
    (tmp_path / "own.py").write_text(OWN)
    return lambda function: f"{tmp_path / 'own.py'}:{function}"


def test_names_and_objects_give_the_same_run(table, table_split, train, same_state, tmp_path):
    file = niidpart.write(table_split, tmp_path / "split.h5")
    module = fltrain.models.create("mlp", (6,), 3, 0)
    runs = [
        train(table_split, table, model=None),
        train(file, table, model="mlp", algorithm="fedavg"),
        train(str(file), table, model=module, algorithm=fltrain.algorithms.fedavg()),
        train(
            file,
            table,
            model=None,
            algorithm=fltrain.algorithms.fedavg(server_lr=1.0),
            out=tmp_path / "run",
        ),
    ]
    assert all(
        same_state(runs[0].state, done.state) and runs[0].history == done.history for done in runs
    )
    assert [done.folder for done in runs] == [None, None, None, tmp_path / "run"]


def test_a_split_file_finds_an_npz_beside_it_or_under_data_root(table, train, tmp_path):
    x, y = table.features(ALL), table.labels
    np.savez(tmp_path / "mine.npz", x=x, y=y, x_test=x[:9], y_test=y[:9])
    data = niidpart.load(str(tmp_path / "mine.npz"))
    split = niidpart.write(niidpart.make(data, "homo", n_parties=3), tmp_path / "split.h5")
    first = train(split).history
    (tmp_path / "mine.npz").rename(tmp_path / "moved.npz")
    with pytest.raises(FileNotFoundError):
        train(split)
    done = train(split, data_root=tmp_path / "moved.npz", out=tmp_path / "run")
    assert done.history == first
    assert fltrain.resume(tmp_path / "run").history == first  # the run remembers where


def test_an_algorithm_and_a_model_of_the_users_own_file(
    table, table_split, train, own, tmp_path, same_state, distance
):
    done = train(table_split, table, algorithm=own("lazy"), model=own("tiny"), out=tmp_path / "run")
    assert {n: tuple(p.shape) for n, p in done.state.models.items()} == {
        "1.weight": (1, 3, 6),
        "1.bias": (1, 3),
    }
    module = fltrain.models.create(own("tiny"), (6,), 3, 0)
    built_in = train(
        table_split, table, algorithm=fltrain.algorithms.fedavg(server_lr=0.5), model=module
    )
    assert same_state(done.state, built_in.state)
    assert (
        distance(done.state.models, train(table_split, table, model=own("tiny")).state.models)
        > 1e-3
    )
    assert json.loads((tmp_path / "run" / "config.json").read_text())["algorithm"]["options"] == {
        "share": 0.5
    }
    assert same_state(fltrain.resume(tmp_path / "run", table, trust=True).state, done.state)


def test_an_algorithm_and_a_model_of_an_installed_module(
    table, table_split, train, same_state, tmp_path, monkeypatch
):
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "parts.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    done = train(
        table_split, table, algorithm="own_package.parts:lazy", model="own_package.parts:tiny"
    )
    assert done.algorithm.spec == "own_package.parts:lazy"
    assert same_state(
        done.state,
        train(
            table_split,
            table,
            algorithm=fltrain.algorithms.fedavg(0.5),
            model="own_package.parts:tiny",
        ).state,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "fedavgg"}, "unknown algorithm 'fedavgg'; did you mean 'fedavg'"),
        ({"algorithm": "sol"}, "did you mean 'solo'"),
        ({"model": "hidden"}, "unknown model 'hidden'; did you mean 'hidden200'"),
        ({"algorithm": "missing.py:f"}, "algorithm '.*missing.py:f': there is no file"),
        ({"algorithm": "no_such_package:f"}, "give file.py:function or package.module:function"),
        ({"model": "missing.py:f"}, "model '.*missing.py:f': there is no file"),
        (
            {"model": "cnn"},
            r"28 x 28 or 32 x 32 pixels, these examples have shape \(6,\); use --model hidden200",
        ),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(table, table_split, train, options, message):
    with pytest.raises(ValueError, match=message):
        train(table_split, table, **options)


def test_an_own_function_that_is_not_there_or_gives_something_else_says_so(
    table, table_split, train, own
):
    with pytest.raises(ValueError, match=r"has no function 'lasy'; did you mean 'lazy'"):
        train(table_split, table, algorithm=own("lasy"))
    with pytest.raises(ValueError, match=r"returned 3; an fltrain.Algorithm is needed"):
        train(table_split, table, algorithm=own("nothing"))


def test_an_option_that_an_algorithm_lacks_is_answered():
    with pytest.raises(
        ValueError, match="algorithm 'fedavg' has no option 'server_lrs'; did you mean 'server_lr'"
    ):
        fltrain.algorithms.build("fedavg", server_lrs=0.5)
    with pytest.raises(
        ValueError, match=r"algorithm 'solo' has no option 'server_lr'; it belongs to .*fedavg"
    ):
        fltrain.algorithms.build("solo", server_lr=0.5)
    with pytest.raises(
        ValueError, match="algorithm 'fedavg': server_lr is 'fast'; it must be a number"
    ):
        fltrain.algorithms.build("fedavg", server_lr="fast")


def test_global_generators_are_left_alone(table, table_split, train):
    torch.manual_seed(11)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    noisy = niidpart.make(
        table, "homo", n_parties=3, transforms=[("noise", {"level": "std", "fresh": True})]
    )
    for split, algorithm in ((table_split, "fedavg"), (noisy, "solo")):
        train(split, table, algorithm=algorithm, fraction=0.5)
    train(noisy, table, algorithm="centralised")
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    assert random.getstate() == before[2]


def test_the_global_generator_decides_nothing(table, table_split, train, same_state):
    states = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        states.append(train(table_split, table).state)
    assert same_state(*states)


def test_dropout_is_drawn_from_the_seed(table, table_split, train, same_state):
    model = nn.Sequential(nn.Linear(6, 20), nn.Dropout(0.5), nn.Linear(20, 3))
    before = torch.get_rng_state()
    states = []
    for seed in (1, 2):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            states.append(train(table_split, table, model=model).state)
    assert torch.equal(torch.get_rng_state(), before)
    assert same_state(*states)


@pytest.mark.parametrize("algorithm", ["fedavg", "solo", "centralised"])
def test_the_model_of_a_party_predicts_as_the_history_says(table, table_split, train, algorithm):
    done = train(table_split, table, algorithm=algorithm)
    each = []
    for party, rows in enumerate(table_split.test):
        model = done.model(party)
        assert not model.training
        right = model(torch.from_numpy(table.features(rows))).argmax(1) == torch.from_numpy(
            table.labels[rows]
        )
        each.append(int(right.sum()) / len(rows))
    assert done.history[-1]["party_test_accuracy"] == each


def test_models_of_several_parties_may_be_held_together(table, table_split, train):
    done = train(table_split, table, algorithm="solo")
    x = torch.from_numpy(table.test_features(ALL))
    one_by_one = [done.model(party)(x) for party in range(5)]
    together = [done.model(party) for party in range(5)]
    assert all(torch.equal(a, model(x)) for a, model in zip(one_by_one, together, strict=True))


def test_the_users_module_keeps_its_weights(table, table_split, train, same):
    module = fltrain.models.create("mlp", (6,), 3, 0)
    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    done = train(table_split, table, model=module)
    assert same({n: p.detach() for n, p in module.named_parameters()}, before)
    done.model()
    assert same({n: p.detach() for n, p in module.named_parameters()}, before)


def test_a_run_of_objects_without_names_asks_for_them_and_goes_on_with_them(
    table, table_split, train, same_state, tmp_path
):
    unnamed = fltrain.algorithms.ALGORITHMS.find("fedavg")(server_lr=0.5)
    module = fltrain.models.create("mlp", (6,), 3, 0)
    assert unnamed.spec == ""

    def copy(p):
        if isinstance(p, fltrain.RoundDone) and p.round == 2:
            shutil.copytree(tmp_path / "run", tmp_path / "stopped")

    done = train(
        table_split,
        table,
        algorithm=unnamed,
        model=module,
        rounds=4,
        out=tmp_path / "run",
        progress=copy,
    )
    with pytest.raises(
        RunError,
        match=r"an algorithm that has no name \(fedavg\); fltrain.resume\(folder, algorithm=...\) takes it",
    ):
        fltrain.resume(tmp_path / "stopped", table)
    with pytest.raises(
        RunError, match=r"a module that has no name; fltrain.resume\(folder, model=...\) takes it"
    ):
        fltrain.resume(tmp_path / "stopped", table, algorithm=unnamed)
    resumed = fltrain.resume(tmp_path / "stopped", table, algorithm=unnamed, model=module)
    assert same_state(resumed.state, done.state)
    assert resumed.history == done.history


def test_an_algorithm_that_was_changed_has_no_name(table, table_split, train, tmp_path):
    built = fltrain.algorithms.fedavg()
    slower = replace(built, name="slower", aggregate=lambda state, plan, total, hyper: state)
    train(table_split, table, algorithm=slower, out=tmp_path / "run")
    with pytest.raises(RunError, match="an algorithm that has no name"):
        fltrain.resume(tmp_path / "run", table)


def test_a_run_of_an_own_file_can_be_taken_up_from_another_folder(
    table, table_split, train, tmp_path, monkeypatch
):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    train(table_split, table, algorithm="own.py:lazy", model="own.py:tiny", out="run")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"names code outside fltrain.*--trust"):
        fltrain.resume(tmp_path / "run", table)
    assert len(fltrain.resume(tmp_path / "run", table, trust=True).history) == 2


def test_resume_refuses_other_data(table, table_split, train, tmp_path):
    train(table_split, table, out=tmp_path / "run")
    with pytest.raises(ValueError, match="not the data of the split"):
        fltrain.resume(
            tmp_path / "run", niidpart.from_arrays(table.features(ALL), np.roll(table.labels, 1))
        )


def test_progress_tells_of_each_job_and_each_round(table, table_split, train):
    told = []
    done = train(table_split, table, progress=told.append)
    kinds = [fltrain.Announcement] + ([fltrain.JobDone] * 5 + [fltrain.RoundDone]) * 2
    assert [type(p) for p in told] == kinds
    jobs = [(r, 2, j, 5) for r in (1, 2) for j in range(1, 6)]
    assert [astuple(p) for p in told if isinstance(p, fltrain.JobDone)] == jobs
    assert [p.metrics for p in told if isinstance(p, fltrain.RoundDone)] == done.history


def test_the_names_of_earlier_events_still_answer_and_say_so():
    event = fltrain.JobDone(1, 2, 3, 4)
    with pytest.warns(FutureWarning, match="events are types of their own"):
        assert event.metrics is None
    with pytest.warns(FutureWarning, match="RoundDone"):
        assert fltrain.Announcement("engine looped").told == "engine looped"
    with pytest.raises(AttributeError, match="colour"):
        event.colour  # noqa: B018


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            torch.nn.Linear(6, 4),
            r"the model gives \(2, 4\) for 2 examples; \(2, 3\), a number for each class, is needed",
        ),
        (torch.nn.Linear(6, 2), r"the model gives \(2, 2\) for 2 examples"),
        (torch.nn.Linear(5, 3), r"the model cannot take examples of shape \(6,\)"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_anything_is_written(
    table, table_split, train, tmp_path, model, said
):
    with pytest.raises(ValueError, match=said):
        train(table_split, table, model=model, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_option_of_an_algorithm_is_no_setting_and_the_error_says_where_it_goes(
    table, table_split, train
):
    with pytest.raises(
        ValueError,
        match=r"mu is an option of fednova, fedprox, .*give algorithm=fltrain\.algorithms\.fedprox\(mu=\.\.\.\)",
    ):
        train(table_split, table, algorithm="fedprox", mu=0.1)


def test_where_parties_have_models_of_their_own_one_has_to_say_whose(table, table_split, train):
    done = train(table_split, table, algorithm="solo")
    for party in (None, 5, -1):
        with pytest.raises(
            ValueError,
            match=r"solo has a model for each of 5 parties; say which, model\(party\) with 0\.\.4",
        ):
            done.model(party)
    with pytest.raises(ValueError, match="trains no personal models"):
        done.model(0, personal=True)
    assert not torch.equal(done.model(0).out.weight, done.model(1).out.weight)


def test_a_noisy_test_that_takes_long_is_announced(table, dealt, train, monkeypatch):
    monkeypatch.setattr("fltrain.runs.cells._MANY", 100)  # 3 parties x 40 test examples
    split = dealt(table, [i % 3 for i in range(90)], transforms=[("noise", {"sigma": 0.1})])
    with pytest.warns(
        UserWarning, match=r"goes over the test set 3 times \(--noisy-test\); --eval-every 10"
    ):
        train(split, table, noisy_test=True)


def test_what_parties_keep_is_refused_where_it_does_not_fit(
    table, dealt, train, monkeypatch, tmp_path
):
    split = dealt(table, [i % 30 for i in range(90)], test=[0] * 90, n_parties=30)
    monkeypatch.setattr("fltrain.runs.states.free_memory", lambda device: 100_000.0)
    said = r"scaffold keeps .* GiB at each of 30 parties, .* GiB are free; .* \(at most 12\)"
    with pytest.raises(ValueError, match=said):
        train(split, table, algorithm="scaffold", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert train(split, table, rounds=1).history  # FedAvg keeps nothing


def test_a_run_that_is_refused_in_its_first_round_leaves_no_folder(
    table, table_split, train, tmp_path
):
    def refuse(task, local, batch):
        raise ValueError("not like this")

    algorithm = replace(fltrain.algorithms.fedavg(), direction=refuse)
    with pytest.raises(ValueError, match="not like this"):
        train(table_split, table, algorithm=algorithm, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    with pytest.raises(ValueError, match="not like this"):
        train(table_split, table, algorithm=algorithm, out=tmp_path / "link")
    assert not (tmp_path / "link").exists()
    assert train(table_split, table, rounds=1, out=tmp_path / "link").history


def test_a_run_that_diverges_in_its_first_round_keeps_its_folder(
    table, table_split, train, tmp_path
):
    with pytest.raises(fltrain.Diverged):
        train(table_split, table, lr=1e30, out=tmp_path / "run")
    assert (tmp_path / "run" / "config.json").exists()


def test_a_run_shows_itself_in_one_line(table, table_split, train, tmp_path):
    shown = repr(train(table_split, table, out=tmp_path / "run"))
    assert re.fullmatch(r"Run\(fedavg, 2 rounds, test accuracy \d+\.\d\d %, .*run\)", shown), shown


def test_what_is_no_model_is_refused(table, table_split, train):
    with pytest.raises(
        ValueError,
        match=r"model is <function .*; give a name, 'file\.py:function', a torch\.nn\.Module",
    ):
        train(table_split, table, model=lambda shape, n: None)


def test_an_algorithm_that_was_not_called_is_refused(table, table_split):
    with pytest.raises(fltrain.UsageError, match=r"the function fedprox; call it: .*fedprox\(\)"):
        fltrain.run(table_split, table, algorithm=fltrain.algorithms.fedprox)
    with pytest.raises(fltrain.UsageError, match="algorithm is 3; give a name"):
        fltrain.run(table_split, table, algorithm=3)
