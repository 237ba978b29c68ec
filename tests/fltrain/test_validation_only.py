"""Runs that read no test set: what they measure, and what they refuse."""

import dataclasses

import pytest

import fltrain
import niidpart

HOW = {"model": "linear", "rounds": 2, "local_epochs": 1, "threads": 1}


@pytest.fixture
def split(table):
    return niidpart.make(table, "homo", n_parties=3, val=0.2, test=0.2)


def test_no_test_row_is_read_and_the_model_is_the_same(table, split):
    tests = {int(row) for row in split.test.indices}
    read = set()

    def features(rows):
        numbers = range(len(table.labels))[rows] if isinstance(rows, slice) else rows.tolist()
        read.update(numbers)
        return table.features(rows)

    def refuse(rows):
        raise AssertionError("the global test set was read")

    # A row is looked at for the shape of all, whatever it is of.
    first = {0}
    watched = dataclasses.replace(table, features=features, test_features=refuse)
    done = fltrain.run(split, watched, validation_only=True, **HOW)
    assert not (read & tests) - first
    usual = fltrain.run(split, table, **HOW)
    for metrics, all_of_them in zip(done.history, usual.history, strict=True):
        assert not [name for name in metrics if "test" in name]
        assert metrics["party_val_accuracy"] == all_of_them["party_val_accuracy"]
        assert metrics["train_loss"] == all_of_them["train_loss"]


@pytest.mark.parametrize("algorithm", ["fedavg", "solo", "ditto", "fedcd"])
def test_every_kind_of_model_is_measured_on_validation_parts(table, split, algorithm):
    (metrics,) = fltrain.run(
        split,
        table,
        algorithm=algorithm,
        validation_only=True,
        metrics=["macro-f1"],
        **HOW | {"rounds": 1},
    ).history
    assert 0 <= metrics["party_val_accuracy_weighted"] <= 1
    assert metrics["party_val_macro_f1_mean"] is not None
    assert ("personal_party_val_accuracy_weighted" in metrics) == (algorithm == "ditto")


def test_a_run_folder_is_resumed_and_verified_without_the_test_set(table, split, tmp_path):
    class Enough(Exception):
        pass

    def stop(event):
        if isinstance(event, fltrain.RoundDone):
            raise Enough

    asked = HOW | {"validation_only": True, "finetune": 1, "checkpoint_every": 1}
    with pytest.raises(Enough):
        fltrain.run(split, table, out=tmp_path / "run", progress=stop, **asked)
    resumed = fltrain.resume(tmp_path / "run", table)
    whole = fltrain.run(split, table, **asked)
    assert resumed.history == whole.history
    assert "finetuned_party_val_accuracy_mean" in resumed.history[-1]
    assert fltrain.verify(tmp_path / "run", replay=1, data=table).exit_code == 0


@pytest.mark.parametrize(
    ("made", "asked", "said"),
    [
        ({"test": 0.2}, {}, "validation-only: the parties have no validation part; .*--val 0.2"),
        ({"val": 0.2}, {"noisy_test": True}, "noisy-test is of the test set"),
        ({"val": 0.2}, {"stop_at": "accuracy=0.9"}, "it reads no test set .--validation-only"),
    ],
)
def test_what_needs_a_test_set_or_lacks_a_validation_part_is_refused(table, made, asked, said):
    split = niidpart.make(table, "homo", n_parties=3, **made)
    with pytest.raises(fltrain.UsageError, match=said):
        fltrain.run(split, table, validation_only=True, **asked, **HOW)


def test_a_run_may_stop_at_what_it_measures(table, split):
    done = fltrain.run(
        split, table, validation_only=True, stop_at="party_val_accuracy_weighted>=0", **HOW
    )
    assert done.stopped.round == 1
