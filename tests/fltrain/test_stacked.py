"""The stacked executor: all jobs at once give what they give one after another."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import niidpart
from fltrain import tree
from fltrain.algorithms import ALGORITHMS, build
from fltrain.draws import key, order, orders, signed
from fltrain.engine.jobs import Given, jobs_of, ordered
from fltrain.engine.looped import Looped
from fltrain.engine.round import train_round
from fltrain.engine.stacked import memory
from fltrain.engine.stacked.batches import Deal
from fltrain.engine.stacked.convolution import with_convolutions
from fltrain.engine.stacked.executor import Stacked
from fltrain.engine.stacked.memory import GIB, fitting
from fltrain.engine.stacked.stackable import groups
from fltrain.engine.sums import Sums
from fltrain.interface import Plan, State, Step
from fltrain.models import Staged, create
from fltrain.prepare import initial, prepare
from fltrain.settings import Settings

pytestmark = pytest.mark.usefixtures("without_curves")

BASE = build("fedavg")
USUAL = {"rounds": 2, "local_epochs": 2, "fraction": 0.8, "momentum": 0.9, "weight_decay": 1e-3, "lr": 0.05, "batch_size": 7}
VARIANTS = {name: [{}] for name in ALGORITHMS.names()} | {
    "fedcd": [{"milestones": (1,)}],
    "fedmoc": [{}, {"delta_min": 0.3}, {"coefficients": "gram-schmidt-clip"}],
    "fednova": [{}, {"mu": 0.1}, {"server_momentum": 0.5}],
    "fedrl": [{"schedule": s, "mu": 1.0} for s in ("batch", "epoch", "round")],
    "scaffold": [{"option": o, "correction": c} for o in ("i", "ii") for c in ("post", "grad")],
}
CASES = [(name, options) for name in VARIANTS for options in VARIANTS[name]] + [("own", {})]
NAMES = [f"{name} {' '.join(map(str, options.values()))}".strip() for name, options in CASES]


class Double(nn.Module):
    """The first layer of a model in float64, for data in float32."""

    def forward(self, x):
        return x.double()


def network(normed=False, double=True):
    """Hidden stages that end in a sigmoid, a dropout; normed: batch norm, whose statistics padding would change."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        norm = [nn.BatchNorm1d(12)] if normed else []
        first = nn.Sequential(*([Double()] if double else []), nn.Linear(6, 12), *norm, nn.Sigmoid(), nn.Dropout(0.2))
        model = Staged(fc1=first, fc2=nn.Sequential(nn.Linear(12, 8), nn.Sigmoid()), out=nn.Linear(8, 3))
    return model.double() if double else model


def own():
    """A user's: a memory at the server and at each party, something said to all and to each, something carried; no name."""

    def init(task, info, models, buffers):
        return State(models, buffers, {"velocity": tree.zeros_like(models)}, {"visits": torch.zeros(len(info.n)), "n": info.n})

    def plan(state, cohort, round):
        n = state.parties["n"][cohort]
        shared = {"round": torch.tensor(float(round))}
        return Plan(cohort, torch.zeros_like(cohort), torch.ones(len(cohort), dtype=torch.float64), n > n.min(), shared, {"pull": n / 1000})

    def begin(task, local):
        return local._replace(carry={"seen": torch.zeros(()), "first": {}})

    def direction(task, local, batch):
        step = task.grad(local, batch)
        pull = local.each["pull"] / local.shared["round"] * local.hyper["beta"] * (1 + local.carry["seen"])
        grad = tree.map(lambda g, w, w0: g + pull * (w - w0), step.grad, local.params, local.start)
        return step._replace(grad=grad, carry={"seen": local.carry["seen"] + 1, "first": {}}, after=tree.map(lambda w: 0.01 * w, local.params))

    def finish(task, local, work):
        upload, _ = BASE.finish(task, local, work)
        return upload, {"visits": local.own["visits"] + work.steps + local.carry["seen"], "n": local.own["n"]}

    def aggregate(state, plan, total):
        mean = BASE.aggregate(state, plan, total).models
        velocity = tree.map(lambda v, w, m: 0.5 * v + (w - m), state.server["velocity"], state.models, mean)
        return replace(state, models=tree.map(lambda w, v: w - v, state.models, velocity), server={"velocity": velocity})

    hyper = {"beta": 0.5}
    return replace(BASE, name="own", hyper=hyper, init=init, plan=plan, begin=begin, direction=direction, finish=finish, aggregate=aggregate)


def algorithm_of(name, options):
    return own() if name == "own" else build(name, **options)


@pytest.fixture
def go(table, table_split, train):
    """go(...): a run of the table's five unequal parties, four a round."""

    def run(algorithm=BASE, engine="stacked", **options):
        return train(table_split, table, **USUAL | {"engine": engine, "algorithm": algorithm, "model": network()} | options | algorithm.settings)

    return run


def apart(a, b):
    """The largest difference of two runs: states and metrics."""
    state = [abs(x.double() - y.double()).max() for part in PARTS for x, y in pairs(a.state, b.state, part)]
    assert [m.keys() for m in a.history] == [m.keys() for m in b.history]
    metrics = [abs(m[k] - n[k]) for m, n in zip(a.history, b.history, strict=True) for k in m if isinstance(m[k], float)]
    return max(float(d) for d in [*state, *metrics])


PARTS = ("models", "buffers", "server", "parties")


def pairs(a, b, part):
    p, q = tree.flatten(getattr(a, part)), tree.flatten(getattr(b, part))
    assert {k: (v.shape, v.dtype) for k, v in p.items()} == {k: (v.shape, v.dtype) for k, v in q.items()}
    return [(p[k], q[k]) for k in p if p[k].numel()]


# Equal to looped


@pytest.mark.parametrize("normed", [False, True], ids=["padded", "batch norm"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=NAMES)
def test_it_is_looped_to_1e_12(go, name, options, normed):
    """Two rounds of two epochs: momentum, decay, a part of the parties, unequal ones, short last batches, dropout; state and metrics."""
    a, b = (go(algorithm_of(name, options), engine, model=network(normed)) for engine in ("looped", "stacked"))
    assert apart(a, b) < 1e-12


# FedAdagrad's server divides a mean change of the models by sqrt(v) + tau, about 1e-2: what rounding leaves grows by as much.
LOOSE = {"fedadagrad": 1e-5}


@pytest.mark.parametrize("normed", [False, True], ids=["padded", "batch norm"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=NAMES)
def test_float32_stays_by_1e_6_after_a_round(go, name, options, normed):
    """At most 30 steps."""
    few = {"rounds": 1, "local_epochs": 2, "model": network(normed, double=False), "lr": 0.02}
    a, b = (go(algorithm_of(name, options), engine, **few) for engine in ("looped", "stacked"))
    assert a.history[0]["steps"] <= 30 * a.history[0]["jobs"]
    assert apart(a, b) < LOOSE.get(name, 1e-6)


@pytest.mark.parametrize("options", [{"shuffle": False}, {"local_steps": 5}, {"local_steps": 40}, {"batch_size": 64}, {"momentum": 0.0}])
def test_other_settings(go, options):
    a, b = (go(BASE, engine, **options) for engine in ("looped", "stacked"))
    assert apart(a, b) < 1e-12


def test_two_runs_are_equal_bit_for_bit(go, same_state):
    for normed in (False, True):
        a, b = (go(build("scaffold"), model=network(normed, double=False)) for _ in range(2))
        assert a.history == b.history
        assert same_state(a.state, b.state)


class Small(Staged):
    """A convolutional model in float64."""

    def __init__(self, channels=1):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            convolved = nn.Sequential(Double(), nn.Conv2d(channels, 4, 5, stride=2, padding=1), nn.Tanh(), nn.MaxPool2d(2))
            super().__init__(conv=convolved, out=nn.Sequential(nn.Flatten(), nn.Linear(144, 10)))
        self.double()


@pytest.mark.parametrize("transform", [[], ["noise"]], ids=["", "fresh noise"])
@pytest.mark.parametrize("drawn", [{}, {"crop": 3, "flip": True}, {"rotate": 20.0}], ids=["plain", "crop and flip", "rotated"])
def test_images_that_are_changed_by_epoch(images, dealt, train, transform, drawn):
    """Parties of 1 to 3 batches: several epochs in one step, and each draws its own."""
    split = dealt(images, np.repeat([0, 1, 2, 3], [20, 13, 11, 6]), transforms=[("noise", {"sigma": 0.3, "fresh": True})] if transform else [])
    a, b = (train(split, images, model=Small(), engine=e, local_epochs=2, lr=0.05, **drawn) for e in ("looped", "stacked"))
    assert apart(a, b) < 1e-12


# Cells


def cell_of(split, data, algorithm=BASE, model=None, held=None, **options):
    settings = Settings.of({**USUAL, "threads": 1, "device": "cpu", "engine": "stacked"} | options)
    return prepare(split, data, algorithm, network() if model is None else model, settings, held)


def trained(cells, executor, round=1):
    """(sums, losses, owns) of one round of all parties of some cells."""
    states = [initial(cell) for cell in cells]
    plans = [ordered(c.algorithm.plan(s, torch.arange(c.data.n_parties), round), c.data) for c, s in zip(cells, states, strict=True)]
    jobs = [job for i, (c, s, p) in enumerate(zip(cells, states, plans, strict=True)) for job in jobs_of(i, c, s, p, round)]
    sums = [Sums(1) for _ in cells]
    done = sorted(executor.train([Given(round, s.models, s.buffers, p.shared) for s, p in zip(states, plans, strict=True)], jobs, sums))
    executor.close()
    assert [one.job for one in done] == list(range(len(jobs)))
    return {"sums": {str(i): one.total for i, one in enumerate(sums)}, "own": {str(i): one.own for i, one in enumerate(done)}}, [d.loss for d in done]


def near(a, b, bound=1e-12):
    """Two outcomes of `trained`."""
    assert a[1] == pytest.approx(b[1], abs=bound)
    p, q = tree.flatten(a[0]), tree.flatten(b[0])
    assert p.keys() == q.keys()
    assert max(float((p[k].double() - q[k].double()).abs().max()) for k in p) < bound


PAIRS = {
    "fedavg": ({}, {}),
    "fedprox": ({"mu": 0.1}, {"mu": 2.0}),
    "ditto": ({"lam": 0.1}, {"lam": 2.0}),
    "feddyn": ({"alpha": 0.1}, {"alpha": 0.3}),
    "fedrl": ({"mu": 0.1, "schedule": "epoch"}, {"mu": 1.0, "schedule": "epoch"}),
    "moon": ({"mu": 0.1}, {"mu": 1.0, "temperature": 2.0}),
    "scaffold": ({"option": "i"}, {"option": "i"}),
    "solo": ({}, {}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_cells_that_differ_in_numbers_share_a_stack(table, table_split, name):
    """Other mu, learning rate, momentum, seed and, in the fourth cell, no momentum; each as by itself, and as looped."""
    numbers = [{"lr": 0.05, "momentum": 0.9}, {"lr": 0.01, "momentum": 0.5, "seed": 7}, {"lr": 0.1, "seed": 7}, {"momentum": 0.0}]
    algorithms = [build(name, **PAIRS[name][i % 2]) for i in range(4)]
    cells = [cell_of(table_split, table, algorithm, **n) for algorithm, n in zip(algorithms, numbers, strict=True)]
    assert groups(cells) == [[0, 1, 2, 3]]
    looped = rounds(cells, Looped(cells))
    for executor in (Stacked(cells), Stacked(cells, chunk=3)):
        assert max(apart(a, b) for a, b in zip(looped, rounds(cells, executor), strict=True)) < 1e-12


def rounds(cells, executor):
    """Two rounds of all parties: in the second the cells say different things to their parties, who remember different things."""
    states, history = [initial(cell) for cell in cells], [[] for _ in cells]
    for round in (1, 2):
        plans = [cell.algorithm.plan(state, torch.arange(5), round) for cell, state in zip(cells, states, strict=True)]
        done = train_round(cells, states, plans, round, executor)
        states = [one.state for one in done]
        for past, one in zip(history, done, strict=True):
            past.append({"train_loss": one.loss})
    return [Outcome(state, past) for state, past in zip(states, history, strict=True)]


class Outcome(NamedTuple):
    state: State
    history: list


def test_seeds_of_augmentation_and_splits_of_one_data_set_share_a_stack(images):
    """Four sources of batches: two splits, of unequal size, and two seeds. The full gradients of SCAFFOLD are gathered from each."""
    cells = []
    for seed in (1, 2):
        split = niidpart.make(images, "quantity", n_parties=3, beta=1.0, min_size=3, seed=seed, val=0.4 if seed == 1 else 0.0)
        held = None
        for run in (1, 2):
            cells.append(cell_of(split, images, build("scaffold", option="i"), Small(), held, seed=run, crop=2, batch_size=8))
            held = cells[-1].data
    assert groups(cells) == [[0, 1, 2, 3]]
    deal = Deal(cells, [job for i, c in enumerate(cells) for job in jobs_of(i, c, *planned(c), 1)], 1)
    assert len(deal.sources) == 4
    near(trained(cells, Stacked(cells)), trained(cells, Looped(cells)))


def planned(cell):
    state = initial(cell)
    return state, ordered(cell.algorithm.plan(state, torch.arange(cell.data.n_parties), 1), cell.data)


def test_cells_that_differ_in_more_do_not(table, table_split):
    wider = Staged(fc1=nn.Sequential(Double(), nn.Linear(6, 13), nn.Sigmoid()), out=nn.Linear(13, 3)).double()
    steeper = network()
    steeper.fc1[-1].p = 0.3
    options = [{}, {"lr": 0.5}, {"batch_size": 8}, {"local_epochs": 1}, {"weight_decay": 0.0}, {"model": wider}, {"model": steeper}]
    cells = [cell_of(table_split, table, **o) for o in options]
    more = [build("fedprox", mu=0.1), build("fedprox", mu=0.0), build("scaffold"), build("scaffold", option="i"), own(), own()]
    cells += [cell_of(table_split, table, algorithm) for algorithm in more]
    assert groups(cells) == [[0, 1], *([i] for i in range(2, 13))]
    near(trained(cells, Stacked(cells)), trained(cells, Looped(cells)))


# Order


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 70)), min_size=1, max_size=8), st.integers(0, 1000), st.integers(0, 3))
def test_orders_are_the_order_of_each(rows, epoch, more):
    """Also with an epoch for each, and more room than is needed."""
    keys, sizes = torch.tensor([signed(k) for k, _ in rows]), torch.tensor([n for _, n in rows])
    width, cpu = int(sizes.max()) + more, torch.device("cpu")
    for epochs in (epoch, torch.arange(len(rows)) + epoch):
        made = orders(keys, epochs, sizes, width)
        for j, (k, n) in enumerate(rows):
            assert torch.equal(made[j, :n], order(k, epoch + (j if isinstance(epochs, torch.Tensor) else 0), n, cpu))
            assert not made[j, n:].any()


def test_a_large_party_beside_small_ones_is_not_padded_for(table, dealt, monkeypatch):
    """Orders of 1 to 1,000 examples are sorted with others about as long, each once an epoch, and equal ones once for all jobs."""
    asked = []

    def counting(keys, epoch, sizes, width):
        asked.append((epoch, sizes.tolist(), width))
        return orders(keys, epoch, sizes, width)

    monkeypatch.setattr("fltrain.engine.stacked.batches.orders", counting)
    split = dealt(table, np.repeat([0, 1, 2, 3], [70, 9, 8, 3]))
    cells = [cell_of(split, table, lr=lr) for lr in (0.1, 0.2)]
    jobs = [job for i, cell in enumerate(cells) for job in jobs_of(i, cell, *planned(cell), 1)]
    deal = Deal(cells, jobs, 1)
    assert sorted(asked) == sorted((e, sizes, max(sizes)) for e in (0, 1) for sizes in ([70], [9, 8], [3]))
    for j, job in enumerate(jobs):
        epochs = [order(key(0, "job", 1, job.party), e, deal.n[j], torch.device("cpu")) for e in (0, 1)]
        assert torch.equal(deal.dealt[deal.base[j] : deal.base[j] + 2 * deal.n[j]], torch.cat(epochs))


# Memory


@pytest.mark.parametrize("normed", [False, True], ids=["padded", "batch norm"])
@pytest.mark.parametrize("name", ["fedavg", "ditto", "scaffold", "moon"])
def test_chunks_change_rounding_alone(table, table_split, name, normed):
    cells = [cell_of(table_split, table, build(name), network(normed), lr=lr) for lr in (0.05, 0.01)]
    whole = trained(cells, Stacked(cells))
    for chunk in (1, 2, 7):
        near(trained(cells, Stacked(cells, chunk=chunk)), whole)


def needed(cells, monkeypatch):
    """Bytes that a job of these cells takes, as the executor counts them."""
    counted = []
    monkeypatch.setattr("fltrain.engine.stacked.executor.fitting", lambda n, *rest: counted.append(n) or fitting(n, *rest))
    trained(cells, Stacked(cells))
    return counted[0]


def test_jobs_go_in_chunks_that_fit(table, table_split, monkeypatch):
    """What is free, or what is asked for, is enough for 2.5 jobs: two at once, to the same result."""
    cells = [cell_of(table_split, table)]
    one = needed(cells, monkeypatch)
    whole, asked = trained(cells, Stacked(cells)), [cell_of(table_split, table, memory=2.5 * one / GIB)]
    monkeypatch.setattr(memory, "free", lambda device: 2.5 * one / memory.SHARE)
    for executor in (Stacked(cells), Stacked(asked)):
        near(trained(executor.cells, executor), whole)
        assert executor.plans[0].chunk == 2


def test_what_a_job_needs_grows_with_weights_batch_and_what_it_keeps(table, table_split, monkeypatch):
    """Beside FedAvg SCAFFOLD has control and correction, and uploads a change in float64: at least 6 times the weights. A batch of 64 keeps more."""
    plain, scaffold, large = (
        needed([cell_of(table_split, table, build(name), batch_size=b)], monkeypatch) for name, b in (("fedavg", 7), ("scaffold", 7), ("fedavg", 64))
    )
    weights = 8 * (6 * 12 + 12 + 12 * 8 + 8 + 8 * 3 + 3)
    assert plain > 8 * weights  # in training, velocity, gradient, two of the step; the upload three times
    assert scaffold - plain >= 6 * weights
    assert large > plain + 57 * 8 * (12 + 8)


def test_too_little_memory_for_one_job(go, monkeypatch):
    with pytest.raises(
        ValueError, match=r"one job needs about .* GiB, and --memory allows 1e-08; raise --memory, lower --batch-size \(now 7\), or use --eng"
    ):
        go(memory=1e-8)
    monkeypatch.setattr(memory, "free", lambda device: 100.0)
    with pytest.raises(ValueError, match=r"GiB, and 7.45e-08 are free; free some memory"):
        go()


# What cannot be stacked, and what need not be


class Branching(nn.Linear):
    def forward(self, x):
        out = super().forward(x)
        return out if out.sum() > 1000 else 2 * out


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 4, batch_first=True)

    def forward(self, x):
        return self.lstm(x.unflatten(1, (3, 2)))[0][:, -1]


def after(layer):
    return nn.Sequential(nn.Linear(6, 6), layer, nn.Linear(4 if isinstance(layer, Sequence) else 6, 3))


LAYERS = {
    "AlphaDropout": (nn.AlphaDropout(0.1), "1", "vmap: called random operation"),
    "Branching": (Branching(6, 6), "1", "vmap: It looks like you're either .* data-dependent control flow"),
    "LSTM": (Sequence(), "1.lstm", "There is a performance drop"),
    "RReLU": (nn.RReLU(), "1", "vmap: "),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_that_cannot_be_stacked_is_named_before_the_first_round(table, table_split, go, kind):
    layer, name, why = LAYERS[kind]
    model = after(layer)
    with pytest.raises(ValueError, match=rf"the model cannot be stacked: layer '{name}' \({kind}\) cannot run for many jobs at once: {why}") as error:
        go(model=model)
    assert str(error.value).endswith("; use --engine looped or processes")
    assert go(model=model, engine="looped").history  # they do


def test_compiled_models_cannot_be_stacked(table, table_split):
    cell = cell_of(table_split, table)
    with pytest.raises(ValueError, match="the model cannot be stacked: compiled models cannot be stacked: leave out --compile; use --engine looped"):
        Stacked([replace(cell, task=replace(cell.task, compiled=True))])


def branching(task, local, batch):
    step = task.grad(local, batch)
    return step if step.loss > 1e9 else step._replace(grad=tree.map(lambda g: 2 * g, step.grad))


def later(task, local, batch):
    return branching(task, local, batch) if batch.step > 2 else task.grad(local, batch)


def reading(task, local, work):
    float(tree.leaves(local.params)[0].sum())
    return BASE.finish(task, local, work)


@pytest.mark.parametrize(
    ("changes", "what"), [({"direction": branching}, "direction"), ({"direction": later}, "later steps"), ({"finish": reading}, "finish")]
)
def test_an_algorithm_that_cannot_be_stacked(go, changes, what):
    algorithm = replace(BASE, name="mine", **changes)
    with pytest.raises(
        ValueError, match=rf"mine cannot be stacked: its {what} cannot run for many jobs at once: vmap: .*; use --engine looped or proc"
    ):
        go(algorithm)
    assert go(algorithm, "looped").history


def test_an_algorithm_that_fails_alone_fails_in_its_own_words(go):
    def direction(task, local, batch):
        raise KeyError("nothing to do with stacking")

    with pytest.raises(KeyError, match="nothing to do with stacking"):
        go(replace(BASE, direction=direction))


def test_what_is_carried_keeps_its_form(go):
    """As in looped it may begin with the first step, and be a number; not later, where jobs have ended."""

    def counting(task, local, batch):
        return task.grad(local, batch)._replace(carry={"n": local.carry.get("n", 0) + 1})

    def changing(task, local, batch):
        return task.grad(local, batch)._replace(carry={"late": batch.x.sum()} if batch.step > 3 else {})

    def finish(task, local, work):
        upload, kept = BASE.finish(task, local, work)
        return upload | {"n": torch.zeros((), dtype=torch.float64) + local.carry["n"] * work.share}, kept

    a, b = (go(replace(BASE, direction=counting, finish=finish), engine) for engine in ("looped", "stacked"))
    assert apart(a, b) < 1e-12
    with pytest.raises(ValueError, match=r"fedavg: direction returned carry \['late'\] after \[\]; stacked jobs must carry the same"):
        go(replace(BASE, direction=changing))


def test_what_takes_no_notice_of_padding_is_not_padded(go):
    """A direction that sums over all that it is given, and one that does not take a mask at all."""

    def summing(task, local, batch):
        return task.grad(local, batch, extra=lambda params, out: out.logits.square().sum() / 50)

    def refusing(task, local, batch):
        assert batch.mask is None
        return Step(*summing(task, local, batch)) if batch.mask is None else 1 / 0

    for direction in (summing, refusing):
        a, b = (go(replace(BASE, direction=direction), engine) for engine in ("looped", "stacked"))
        assert apart(a, b) < 1e-12


@pytest.mark.parametrize("lockstep", ["step", "epoch"])
def test_an_epoch_that_is_read_as_a_number_is_one(go, lockstep):
    def direction(task, local, batch):
        return task.grad(local, batch)._replace(after=tree.map(lambda w: [0.1, 0.01][batch.epoch] * w, local.params))

    a, b = (go(replace(BASE, direction=direction, lockstep=lockstep), engine) for engine in ("looped", "stacked"))
    assert apart(a, b) < 1e-12


def test_an_epoch_that_is_calculated_with_is_each_jobs_own(go):
    def direction(task, local, batch):
        return task.grad(local, batch)._replace(after=tree.map(lambda w: 0.1 * (batch.epoch + 1) * w, local.params))

    a, b = (go(replace(BASE, direction=direction), engine) for engine in ("looped", "stacked"))
    assert apart(a, b) < 1e-12


def test_batch_norm_on_a_batch_of_one_names_party_and_batch_size(table, dealt, train):
    split = dealt(table, np.repeat([0, 1, 2], [40, 29, 21]))
    for engine in ("looped", "stacked"):
        with pytest.raises(ValueError, match="batch norm cannot train on a batch of one example; choose a --batch-size") as error:
            train(split, table, model=network(normed=True), engine=engine, batch_size=7)
        assert error.value.__notes__[0] == "that was party 1, of 29 examples, in batches of 7"


def test_a_party_whose_loss_is_not_finite_ends_its_run_alone(table, table_split, go):
    said = []
    for engine in ("looped", "stacked"):
        with pytest.raises(ValueError, match="not finite") as error:
            go(engine=engine, lr=1e200)
        said.append(str(error.value))
    assert said[0] == said[1]
    cells = [cell_of(table_split, table, lr=lr, local_epochs=5) for lr in (0.05, 1e200)]
    assert groups(cells) == [[0, 1]]
    (both, losses), alone = trained(cells, Stacked(cells)), trained(cells[:1], Stacked(cells[:1]))
    assert not any(np.isfinite(losses[5:]))
    near(({"sums": {"0": both["sums"]["0"]}}, losses[:5]), ({"sums": {"0": alone[0]["sums"]["0"]}}, alone[1]))
    assert both["sums"]["1"] == {}


def test_a_party_without_examples_and_a_single_party(table, dealt, train):
    for owner in ([i % 2 for i in range(90)], [0] * 90):
        split = dealt(table, owner, n_parties=max(owner) + (2 if max(owner) else 1))
        a, b = (train(split, table, model=network(), engine=engine) for engine in ("looped", "stacked"))
        assert apart(a, b) < 1e-12


# Convolutions


@pytest.mark.parametrize("how", ["grouped", "product"])
@pytest.mark.parametrize("name", ["cnn", "lenet5-bn"])
def test_the_papers_cnn_and_the_one_with_batch_norm(images, dealt, name, how):
    model = create(name, (1, 28, 28), 10, 0)
    model.conv1.insert(0, Double())
    split = dealt(images, [0] * 20 + [1] * 13 + [2] * 17)
    cells = [cell_of(split, images, BASE, model.double())]
    near(trained(cells, Stacked(cells, convolutions=how)), trained(cells, Looped(cells)))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 3},
        {"kernel_size": (2, 3), "stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)},
        {"kernel_size": 1, "stride": 3, "bias": False},
    ],
)
def test_products_are_the_convolution(options):
    """Outputs and both gradients, by themselves and for many jobs at once."""
    g = torch.Generator().manual_seed(0)
    layer = nn.Conv2d(3, 5, **options).double()
    product = with_convolutions(nn.Sequential(layer), "product")[0]
    assert type(product) is not nn.Conv2d
    assert product.state_dict().keys() == layer.state_dict().keys()
    params = {name: torch.randn(4, *p.shape, generator=g, dtype=torch.float64) for name, p in layer.named_parameters()}
    x = torch.randn(4, 2, 3, 9, 11, generator=g, dtype=torch.float64)

    def of(which):
        def f(params, x):
            out = torch.func.functional_call(which, params, (x,))
            return out.square().sum(), out

        return torch.func.grad(f, argnums=(0, 1), has_aux=True)

    a, b = torch.func.vmap(of(layer))(params, x), torch.func.vmap(of(product))(params, x)
    c = of(product)(tree.index(params, 1), x[1])
    for p, q, r in zip(*(torch.utils._pytree.tree_leaves(v) for v in (a, b, c)), strict=True):
        assert p.shape == q.shape
        assert float((p - q).abs().max()) < 1e-11 * max(1.0, float(p.abs().max()))
        assert float((p[1] - r).abs().max()) < 1e-11 * max(1.0, float(p.abs().max()))


def test_other_convolutions_are_left_alone():
    layers = [
        nn.Conv2d(4, 4, 3, groups=2),
        nn.Conv2d(4, 4, 3, padding="same"),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
        nn.Conv1d(4, 4, 3),
    ]
    module = nn.Sequential(*layers)
    assert with_convolutions(module, "product") is module
    assert with_convolutions(nn.Sequential(nn.Conv2d(4, 4, 3)), "product")[0](torch.zeros(4, 5, 5)).shape == (4, 3, 3)  # an image by itself
    with pytest.raises(ValueError, match="convolutions are 'fast'; they can be 'grouped' or 'product'"):
        with_convolutions(module, "fast")
    with pytest.raises(RuntimeError, match="to have 3 channels"):
        with_convolutions(nn.Sequential(nn.Conv2d(3, 4, 3)), "product")(torch.zeros(1, 2, 5, 5))
