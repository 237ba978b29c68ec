"""What follows from a run's history: the way to a value, changes, kinds of party, times, races."""

import numpy as np
import pytest

import fltrain
import niidpart
from fltrain.runs.by_party import average_by_kind, find_kinds
from fltrain.runs.derived import (
    Change,
    OfKind,
    OfSplit,
    TrainingTime,
    Way,
    derive_values,
    parse_derived,
)
from fltrain.runs.folder import RunFolder
from fltrain.runs.metric_names import is_percentage
from fltrain.runs.reaching import (
    aim_at_end,
    measure_changes,
    measure_end,
    measure_settling,
    measure_way,
)
from fltrain.settings.stopping import parse_stop_rule
from fltrain.studies.api import prepare_study, write_study
from fltrain.studies.derived_values import derive_of_cells, is_derived
from fltrain.studies.folder.roster import read_cells
from fltrain.studies.work.worker import work
from niidpart.errors import UsageError

ACCURACIES = [0.2, 0.5, None, 0.45, 0.7]  # of which the third round is not evaluated


def make_history(values, **more):
    """Rounds with such test accuracies, 100 bytes and 2 seconds each."""
    rounds = []
    for at, value in enumerate(values):
        metrics = {"round": at + 1, "bytes_down": 60, "bytes_up": 40, "seconds": 2.0}
        if value is not None:
            metrics["test_accuracy"] = value
        rounds.append(metrics | {name: column[at] for name, column in more.items()})
    return rounds


@pytest.mark.parametrize(
    ("rule", "along", "way"),
    [
        ("accuracy=0.5", "rounds", 2),
        ("accuracy=0.6", "rounds", 5),
        ("accuracy=0.71", "rounds", None),
        ("accuracy=0.6", "bytes", 500),
        ("accuracy=0.5", "seconds", 4),
        ("test_accuracy<=0.3", "rounds", 1),
    ],
)
def test_the_way_to_a_value(rule, along, way):
    assert measure_way(make_history(ACCURACIES), parse_stop_rule(rule), along) == way


def test_the_end_of_a_run_is_what_others_are_held_against():
    history = make_history([0.2, 0.5, 0.45, None])
    rule = aim_at_end(history, "test_accuracy")
    assert (rule.value, rule.is_ceiling) == (0.45, False)
    assert measure_end(history, "test_accuracy") == 3
    # it was there once before, and has passed it
    assert measure_way(history, rule) == 2
    with pytest.raises(UsageError, match="has no party_test_accuracy_mean"):
        aim_at_end(history, "party_test_accuracy_mean")


def test_a_metric_settles_where_it_stays_near_its_end():
    # the last four: mean 0.75; from round 3 on all are within 0.06 of it
    history = make_history([0.2, 0.9, 0.7, 0.8, 0.7, 0.8])
    assert measure_settling(history, "test_accuracy", tolerance=0.06, last=4) == 3
    assert measure_settling(history, "test_accuracy", "bytes", tolerance=0.06, last=4) == 300
    # within 0.04 of it there is none; of five rounds there are not enough behind the second
    assert measure_settling(history, "test_accuracy", tolerance=0.04, last=4) is None
    assert measure_settling(history, "test_accuracy", tolerance=0.06, last=5) is None
    assert measure_settling(history, "test_accuracy", last=7) is None


def test_changes_are_between_evaluated_rounds_and_over_parties_that_have_both():
    history = make_history(ACCURACIES)
    sizes = dict(measure_changes(history, "test_accuracy"))
    assert sizes == pytest.approx({2: 0.3, 4: 0.05, 5: 0.25})
    parties = [[0.1, None], [0.4, 0.5], [0.2, 0.6]]
    history = make_history([0.1, 0.1, 0.1], party_test_accuracy=parties)
    sizes = dict(measure_changes(history, "party_test_accuracy"))
    assert sizes == pytest.approx({2: 0.3, 3: (0.2 + 0.1) / 2})


def test_parties_of_a_kind_have_a_mean():
    kinds = [0, 0, 0, 1]
    lists = [[0.1, 0.3, None, None], [0.2, 0.2, 0.8, 0.5]]
    history = make_history([0.1, 0.1], party_test_accuracy=lists)
    averages = average_by_kind(history, "party_test_accuracy", kinds)
    assert averages[0] == [(1, pytest.approx(0.2)), (2, pytest.approx(0.4))]
    assert averages[1] == [(2, 0.5)]
    with pytest.raises(UsageError, match="test_accuracy is no metric of each party"):
        average_by_kind(history, "test_accuracy", kinds)
    with pytest.raises(UsageError, match=r"no round has party_val_accuracy: .*--val 0\.2"):
        average_by_kind(history, "party_val_accuracy", kinds)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("rounds:accuracy=0.9", Way("rounds", "accuracy=0.9")),
        ("bytes:fedavg", Way("bytes", "fedavg")),
        ("change:party_test_accuracy", Change("party_test_accuracy")),
        ("party_test_accuracy@archetype=3", OfKind("party_test_accuracy", "archetype", "3")),
        ("train_seconds", TrainingTime()),
        ("map_beta_party", OfSplit("map_beta_party")),
        ("quantity-cv", OfSplit("quantity-cv")),
        ("test_accuracy", None),
        ("mine.py:brier", None),
        ("macro-f1", None),
    ],
)
def test_what_is_derived(text, asked):
    assert parse_derived(text) == asked
    assert is_derived(text) == (asked is not None)


def test_a_way_is_no_percentage():
    assert is_percentage("party_test_accuracy@archetype=3")
    assert is_percentage("change:test_accuracy")
    assert not is_percentage("rounds:accuracy=0.9")
    assert not is_percentage("speedup:fedavg")


@pytest.fixture(scope="module")
def devices(tmp_path_factory):
    """A run on FedCD's devices, and its split."""
    data = niidpart.load("digits")
    sizes = {"n_train": 30, "n_val": 10, "n_test": 10}
    split = niidpart.make(data, "hierarchical", n_parties=10, seed=0, **sizes)
    out = tmp_path_factory.mktemp("run") / "run"
    how = {"model": "linear", "rounds": 3, "local_epochs": 1, "threads": 1, "lr": 0.1}
    fedcd = fltrain.algorithms.build("fedcd", milestones=(1,))
    fltrain.run(split, algorithm=fedcd, internals=True, out=out, **how)
    return RunFolder.open(out)


def test_a_run_folder_has_what_is_derived(devices):
    history = devices.history
    kinds = find_kinds(devices.split_file, "archetype")
    assert kinds == list(range(10))
    accuracies = derive_values(devices, parse_derived("party_test_accuracy@archetype=4"))
    assert accuracies == [metrics["party_test_accuracy"][4] for metrics in history]
    (change,) = derive_values(devices, Change("party_test_accuracy_mean"))
    means = [metrics["party_test_accuracy_mean"] for metrics in history]
    assert change == pytest.approx((abs(means[1] - means[0]) + abs(means[2] - means[1])) / 2)
    (seconds,) = derive_values(devices, TrainingTime())
    times = [line["train_seconds"] for line in devices.timing_log.read()]
    assert seconds == pytest.approx(sum(times) / 3)
    reached = f"accuracy={history[-1]['test_accuracy']!r}"
    assert derive_values(devices, Way("rounds", reached))[0] <= 3
    assert derive_values(devices, Way("rounds", "accuracy=1")) == []
    assert derive_values(devices, Way("rounds", "settled=party_test_accuracy_mean")) == []


def test_what_a_split_is_follows_from_its_copy_in_the_folder(devices):
    split = niidpart.read(devices.split_file)
    counts = split.train.counts
    own = np.median(niidpart.heterogeneity.map_beta(counts))
    facts = {
        "n_train": 1437,
        "n_test": 360,
        "n_classes": 10,
        "map_beta": split.skew.map_beta_overall,
        "map_beta_party": own,
        "hellinger": niidpart.heterogeneity.evaluate_measure("hellinger", counts),
    }
    for fact, value in facts.items():
        assert derive_values(devices, OfSplit(fact)) == [pytest.approx(value, rel=1e-12)]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("rounds:macro-f1=0.5", "no run has the metric"),
        ("party_test_accuracy@archetpye=3", "did you mean 'archetype'"),
        ("party_test_accuracy@archetype=11", "no party has archetype 11; there are: 0, 1, "),
        ("test_accuracy@archetype=1", "is no metric of each party"),
    ],
)
def test_what_a_run_has_not_is_named(devices, text, match):
    with pytest.raises(UsageError, match=match):
        derive_values(devices, parse_derived(text))


PLAN = {
    "name": "race",
    "algorithms": ["fedavg", {"name": "fedprox", "mu": 0.1}, {"name": "fedavg", "label": "slow"}],
    "splits": [{"dataset": "digits", "beta": 0.5, "n_parties": 5}],
    "axes": {"fraction": [0.4, 1.0]},
    "fixed": {"model": "linear", "rounds": 3, "local_epochs": 1},
    "trials": 2,
    "when": [{"match": {"algorithm": "slow"}, "set": {"lr": 0.0001}}],
}


@pytest.fixture(scope="module")
def raced(tmp_path_factory):
    study = write_study(prepare_study(PLAN), tmp_path_factory.mktemp("study") / "race")
    work(study.path)
    return study, list(read_cells(study).values())


def test_runs_are_held_against_the_one_of_their_split_seeds_and_fraction(raced):
    study, cells = raced
    rounds = derive_of_cells(study, cells, "rounds:fedavg", "race")
    speedups = derive_of_cells(study, cells, "speedup:fedavg", "race")
    histories = {
        cell.name: RunFolder.open(study.places.find_cell(cell.name)).history for cell in cells
    }
    assert rounds.keys() == speedups.keys()
    for cell in cells:
        where = cell.where["race"]
        pair = [
            other
            for other in cells
            if other.where["race"]["algorithm"] == "fedavg"
            and all(other.where["race"][axis] == where[axis] for axis in ("fraction", "order_seed"))
        ]
        target = histories[pair[0].name][-1]["test_accuracy"]
        there = [m["round"] for m in histories[cell.name] if m["test_accuracy"] >= target]
        if where["algorithm"] == "fedavg":
            assert (rounds[cell.name], speedups[cell.name]) == ([3.0], [1.0])
        elif where["algorithm"] == "slow":
            assert cell.name not in rounds  # it never gets there
        else:
            assert rounds.get(cell.name) == (there[:1] or None)


def test_an_algorithm_that_is_not_there_is_named(raced):
    study, cells = raced
    with pytest.raises(UsageError, match=r"no finished run is of 'fedvag', .* 'fedavg'"):
        derive_of_cells(study, cells, "rounds:fedvag", "race")
