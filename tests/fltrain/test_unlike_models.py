"""Parties with models of different shapes: each trains as it would among its like; who has which; what is refused."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

import fltrain
import niidpart
from fltrain import RunFolder, UsageError
from fltrain.algorithms import fedavg, solo
from fltrain.libraries import list_models
from fltrain.runs.by_party import list_own_models
from fltrain.runs.derived import derive_values, parse_derived
from fltrain.tasks.model_task import ModelTask
from fltrain.tasks.unlike_task import UnlikeTask

# Of one length of features, with dropout, batch norm and a frozen layer at some; twin is wide once more.
NETS = """
import torch
from torch import nn
from fltrain.models import Staged

def make(n_in, n_classes, width, *layers, n_features=4):
    body = nn.Sequential(nn.Linear(n_in, width), *layers, nn.ReLU(), nn.Linear(width, n_features))
    return Staged(body=body, out=nn.Linear(n_features, n_classes))

def wide(shape, n_classes):
    net = make(shape[0], n_classes, 9, nn.BatchNorm1d(9), nn.Dropout(0.3))
    net.body[0].weight.requires_grad_(False)
    return net

twin = wide

def narrow(shape, n_classes):
    return make(shape[0], n_classes, 5)

def frozen(shape, n_classes):
    return make(shape[0], n_classes, 5).requires_grad_(False)

def longer(shape, n_classes):
    return make(shape[0], n_classes, 5, n_features=6)
"""
BOTH = {"batch_size": 7, "momentum": 0.9, "weight_decay": 0.01, "local_epochs": 2}


@pytest.fixture(scope="module")
def nets(tmp_path_factory):
    """nets("wide", "narrow"): their names in one."""
    file = tmp_path_factory.mktemp("nets") / "nets.py"
    file.write_text(NETS)
    return lambda *names: "+".join(f"{file}:{name}" for name in names)


def weights_of(run, party):
    return run.model(party).state_dict()


def test_a_party_of_solo_trains_as_among_its_like_bit_for_bit(
    nets, table, table_split, train, same
):
    """Dropout, batch statistics, momentum, weight decay; wide twice, so that it has two of three parties."""
    how = BOTH | {"algorithm": "solo"}
    names = ("wide", "wide", "narrow")
    mixed = train(table_split, table, model=nets(*names), **how)
    alone = {name: train(table_split, table, model=nets(name), **how) for name in set(names)}
    for party in range(5):
        like = alone[names[party % 3]]
        assert same(weights_of(mixed, party), weights_of(like, party))
        key = "party_test_accuracy"
        assert mixed.history[-1][key][party] == like.history[-1][key][party]


def test_fedproto_with_equal_models_is_that_of_one_model_bit_for_bit(
    nets, table, table_split, train, same
):
    """Two names of one network take the way of unlike models; one name twice is one model."""
    how = BOTH | {"algorithm": "fedproto", "rounds": 3}
    one, two = (
        train(table_split, table, model=nets(*n), **how) for n in (["wide"], ["wide", "twin"])
    )
    assert isinstance(two.task, UnlikeTask)
    assert same(one.state.server, two.state.server)
    assert all(same(weights_of(one, party), weights_of(two, party)) for party in range(5))
    assert one.history == two.history  # bytes too: prototypes alone are sent
    named_twice = train(table_split, table, model=nets("wide", "wide"), **how)
    assert type(named_twice.task) is ModelTask
    assert same(one.state.parties, named_twice.state.parties)


def test_worker_processes_have_the_bits_of_one_thread(nets, table, table_split, train, same_state):
    how = BOTH | {"algorithm": "fedproto", "model": nets("wide", "narrow")}
    a = train(table_split, table, **how)
    b = train(table_split, table, **how, engine="processes", workers=2, threads=None)
    assert same_state(a.state, b.state)


def test_a_killed_run_goes_on_byte_for_byte(nets, table, table_split, train, outcome, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"

    def copy(event):
        if isinstance(event, fltrain.RoundDone) and event.round == 1:
            shutil.copytree(whole, stopped)

    how = BOTH | {"algorithm": "fedproto", "rounds": 3, "cohort_size": 3, "keep_optimizer": True}
    train(table_split, table, model=nets("wide", "narrow"), out=whole, progress=copy, **how)
    fltrain.resume(stopped, table, trust=True)
    assert outcome(stopped) == outcome(whole)
    config = json.loads((whole / "config.json").read_text())
    assert config["party_models"] == [0, 1, 0, 1, 0]
    assert len(config["own_code"]) == 1


def test_parties_keep_their_models_where_others_are_held_out(nets, table, table_split, train):
    start = replace(solo(), serve_new=fedavg().serve)
    how = BOTH | {"model": nets("wide", "narrow"), "new_parties": 2}
    run = train(table_split, table, algorithm=start, **how)
    assert run.new_parties == (0, 4)
    assert run.state.parties["buffers"]["model"].tolist() == [1, 0, 1]  # of parties 1, 2, 3


def test_files_of_one_name_are_told_apart_by_their_folders():
    config = {"model": "/a/net.py:net+/b/net.py:net+cnn", "party_models": [0, 1, 2, 0]}
    assert list_own_models(config) == ["/a/net.py:net", "/b/net.py:net", "cnn", "/a/net.py:net"]
    assert list_own_models(config | {"model": "/a/net.py:net+cnn+mlp"})[0] == "net.py:net"


def test_a_column_says_who_has_which_and_tables_ask_by_model(train, tmp_path):
    data = niidpart.load("digits")
    split = niidpart.make(data, "hierarchical", n_parties=10, seed=0, n_train=20)
    kinds = split.columns["archetype"].tolist()
    how = {"model": "linear+hidden200+linear", "models_by": "archetype", "rounds": 1}
    out = tmp_path / "run"
    run = train(split, data, algorithm="solo", **how, out=out)
    place = {kind: i % 3 for i, kind in enumerate(sorted(set(kinds)))}
    assert run.task.of_party == tuple(place[kind] % 2 for kind in kinds)
    accuracy = run.history[-1]["party_test_accuracy"]
    at = [value for value, place in zip(accuracy, run.task.of_party, strict=True) if place == 1]
    asked = parse_derived("party_test_accuracy@model=hidden200")
    assert derive_values(RunFolder.open(out), asked) == [pytest.approx(sum(at) / len(at))]


@pytest.mark.parametrize(
    ("names", "options", "said"),
    [
        (("wide", "narrow"), {"algorithm": "fedavg"}, "models of 2 shapes, and fedavg sends, av"),
        (("wide", "narrow"), {"algorithm": "lg-fedavg"}, "take fedproto or solo"),
        (("wide", "longer"), {}, "of the models have 4, 6 numbers"),
        (("wide", "narrow"), {"drift": "whole"}, "leave drift out"),
        (("wide", "narrow"), {"init_from": {"w": torch.zeros(1)}}, "has the weights of one"),
        (("wide", "narrow"), {"models_by": "kind"}, "no column 'kind'"),
        (("wide", "narrow"), {"engine": "stacked"}, "which no stack holds; use --engine looped"),
        (("wide", "narrow"), {"engine": "native", "algorithm": "solo"}, "trains one model, and"),
        (("wide", "none"), {}, "has no function 'none'"),
        (("wide", "frozen"), {}, "nets.py:frozen has no parameter that is trained"),
    ],
)
def test_what_unlike_models_cannot_have_is_refused(
    names, options, said, nets, table, table_split, train
):
    with pytest.raises(UsageError, match=said):
        train(table_split, table, **{"algorithm": "fedproto", "model": nets(*names)} | options)


def test_a_column_for_one_model_is_said_to_do_nothing(nets, table, table_split, train):
    with pytest.warns(UserWarning, match="models-by kind does nothing here: all parties have one"):
        train(table_split, table, model=nets("narrow"), models_by="kind", rounds=1)


def test_a_model_that_no_party_has_is_told(nets, table, dealt, train):
    split = dealt(table, [i % 2 for i in range(90)])
    with pytest.warns(UserWarning, match="no party has model linear: 3 take turns among parties"):
        train(split, table, model=nets("wide", "narrow") + "+linear", algorithm="solo", rounds=1)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("cnn+mlp", ["cnn", "mlp"]),
        ("cnn+cnn+mlp", ["cnn", "cnn", "mlp"]),
        ("cnn+cnn", ["cnn"]),
        (
            "./c++/a.py:a+torchvision:resnet18+mlp",
            ["./c++/a.py:a", "torchvision:resnet18", "mlp"],
        ),
        ("cnn+", ["cnn+"]),
        ("", [""]),
    ],
)
def test_names_are_parted_at_a_plus_and_paths_are_not(spec, names):
    assert list_models(spec) == names
