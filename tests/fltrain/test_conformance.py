"""What holds for every algorithm. One in the folder is tested by being there; a user's own file passes the same."""

import json
import shutil
import sys
from dataclasses import replace

import pytest
import torch

import fltrain
from fltrain import RunFolder, tree
from fltrain.algorithms import ALGORITHMS

ROUNDS = 4

# Server momentum (FedAvgM) and a memory at each party, so that every field of a state and of a plan is used.
OWN = """
from dataclasses import replace
import torch
from fltrain import tree
from fltrain.algorithms import fedavg
from fltrain.interface import Plan, State

def remembers(beta: float = 0.5):
    base = fedavg()

    def init(task, info, models, buffers):
        zero = tree.zeros_like(models)
        return State(models, buffers, {"velocity": zero, "rounds": torch.zeros(1)}, {"visits": torch.zeros(len(info.n), 1)})

    def plan(state, cohort, round):
        each = {"pull": torch.arange(1, len(cohort) + 1) / 100}
        keep = torch.arange(len(cohort)) != 0
        return Plan(cohort, torch.zeros_like(cohort), torch.ones(len(cohort), dtype=torch.float64), keep, {"round": torch.tensor(float(round))}, each)

    def direction(task, local, batch):
        step = task.grad(local, batch)
        pull = local.each["pull"] / local.shared["round"] * local.hyper["beta"]
        return step._replace(grad=tree.map(lambda g, w, w0: g + pull * (w - w0), step.grad, local.params, local.start))

    def finish(task, local, work):
        upload, _ = base.finish(task, local, work)
        return upload, {"visits": local.own["visits"] + work.steps}

    def aggregate(state, plan, total):
        mean = base.aggregate(state, plan, total).models
        velocity = tree.map(lambda v, w, m: beta * v + (w - m), state.server["velocity"], state.models, mean)
        models = tree.map(lambda w, v: w - v, state.models, velocity)
        return replace(state, models=models, server={"velocity": velocity, "rounds": state.server["rounds"] + 1})

    return replace(base, name="remembers", hyper={"beta": beta}, init=init, plan=plan, direction=direction, finish=finish, aggregate=aggregate)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "own.py"
    path.write_text(OWN)
    return f"{path}:remembers"


@pytest.fixture(params=[*ALGORITHMS.names(), "file.py:function"])
def name(request, own):
    """The name of an algorithm, as --algorithm takes it."""
    return own if request.param == "file.py:function" else request.param


@pytest.fixture
def go(table, table_split, train):
    """go(algorithm, ...): a run with parts of the parties, momentum, decay and validation parts."""

    def run(algorithm, **options):
        usual = {"rounds": ROUNDS, "fraction": 0.8, "momentum": 0.9, "weight_decay": 1e-3, "lr": 0.05, "model": "mlp"}
        return train(table_split, table, algorithm=algorithm, **usual | options)

    return run


def test_the_seed_decides(name, go, same_state):
    a, b, c = (go(name, seed=seed) for seed in (0, 0, 1))
    assert a.history == b.history
    assert same_state(a.state, b.state)
    assert not same_state(a.state, c.state)


def test_it_learns(name, go):
    done = go(name, rounds=15, lr=0.1, model="hidden200", fraction=1.0)
    assert done.history[-1]["train_loss"] < done.history[0]["train_loss"] - 0.1
    assert done.history[-1]["test_accuracy"] > 0.5  # a third by chance


def test_every_leaf_of_its_state_is_a_tensor_and_parties_have_their_axis(name, go, table_split):
    state = go(name, rounds=1).state
    for part in (state.models, state.buffers, state.server, state.parties):
        assert all(isinstance(leaf, torch.Tensor) and not leaf.requires_grad for leaf in tree.leaves(part))
    assert len({len(leaf) for leaf in tree.leaves(state.models)}) == 1
    assert {len(leaf) for leaf in tree.leaves(state.parties)} <= {table_split.n_parties}
    assert all(leaf.isfinite().all() for leaf in tree.leaves(state.models))


def test_its_state_survives_a_checkpoint(name, go, same_state, tmp_path):
    state, folder = go(name).state, RunFolder(tmp_path)
    folder.save(state, 1)
    assert same_state(folder.restore()[1], state)


def test_a_round_does_not_change_the_state_that_it_is_given(name, go, same_state):
    algorithm, given = fltrain.algorithms.build(name), []

    def plan(state, cohort, round):
        given.append((state, type(state)(*(tree.clone(part) for part in (state.models, state.buffers, state.server, state.parties)))))
        return algorithm.plan(state, cohort, round)

    go(replace(algorithm, plan=plan))
    assert len(given) == ROUNDS
    assert all(same_state(now, then) for now, then in given)
    assert not same_state(given[0][1], given[-1][1])


def test_the_order_of_the_jobs_changes_nothing_beyond_rounding(name, go, distance):
    algorithm = fltrain.algorithms.build(name)

    def backwards(state, cohort, round):
        plan = algorithm.plan(state, cohort, round)
        turned = {k: None if getattr(plan, k) is None else getattr(plan, k).flip(0) for k in ("party", "model", "weight", "keep")}
        return replace(plan, **turned, each=tree.map(lambda leaf: leaf.flip(0), plan.each))

    straight, reversed_ = (go(a, rounds=2).state for a in (algorithm, replace(algorithm, plan=backwards)))
    for part in ("models", "buffers", "server", "parties"):
        assert distance(getattr(straight, part), getattr(reversed_, part)) < 1e-6


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("at", [(1, 2), (2, 0), (3, 1), (3, 0)], ids="round {0[0]} job {0[1]}".format)
def test_a_stopped_run_ends_the_same(name, go, table, outcome, tmp_path, monkeypatch, every, at):
    """at: (round, job) after which the folder is copied, as a kill at that moment leaves it; job 0 is the end of the round."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"

    def copy(p):
        if (p.round, p.job) == (at[0], min(at[1], p.jobs)) and not stopped.exists():
            shutil.copytree(whole, stopped)

    go(name, out=whole, checkpoint_every=every, progress=copy)
    fltrain.resume(stopped, table, trust=True)
    assert outcome(stopped) == outcome(whole)


def test_its_options_are_numbers_and_words_that_a_configuration_can_hold(name):
    algorithm = fltrain.algorithms.build(name)
    assert algorithm.spec == name
    assert fltrain.algorithms.build(name, **json.loads(json.dumps(algorithm.options))).options == algorithm.options


def test_its_first_line_of_documentation_says_what_it_is(name):
    documentation = ALGORITHMS.find(name).__doc__
    if ":" not in name:
        assert documentation
        assert len(documentation.splitlines()[0]) > 20


def test_a_party_without_examples_and_a_single_party_are_no_obstacle(name, table, dealt, train):
    owner = [i % 2 for i in range(80)] + [-1] * 10
    val = [-1] * 80 + [0, 1] * 5
    for split in (dealt(table, owner, val=val, n_parties=4), dealt(table, [0] * 80 + [-1] * 10, val=[-1] * 80 + [0] * 10)):
        done = train(split, table, algorithm=name, model="mlp")
        assert all(torch.tensor(m["train_loss"]).isfinite() for m in done.history)
        assert all(leaf.isfinite().all() for leaf in tree.leaves(done.state.models))
