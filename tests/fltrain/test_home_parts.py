"""What is measured at home is asked for where parties have examples for it, or refused at once."""

import pytest

import fltrain
import niidpart


@pytest.mark.parametrize(
    ("parts", "asked", "said"),
    [
        ({}, {"finetune": 1}, "the parties have no test part; leave finetune out, or make"),
        ({}, {"stop_at": "party_test_accuracy_worst=0.5"}, "have no test part; make the split"),
        ({}, {"stop_at": "personal_party_test_accuracy_mean=0.5"}, "have no test part"),
        ({"test": 0.2}, {"stop_at": "party_val_accuracy_mean=0.5"}, "no val part; .*--val 0.2"),
        ({}, {"algorithm": "fedavg-ft"}, "fedavg-ft's fine-tuning .* no test part; make the split"),
    ],
)
def test_a_number_that_parties_cannot_have_is_refused_before_the_first_round(
    table, tmp_path, parts, asked, said
):
    split = niidpart.make(table, "homo", n_parties=3, **parts)
    with pytest.raises(fltrain.UsageError, match=said):
        fltrain.run(split, table, rounds=1, out=tmp_path / "run", **asked)
    assert not (tmp_path / "run").exists()


def test_a_validation_part_is_enough_for_fine_tuning(table, train):
    split = niidpart.make(table, "homo", n_parties=3, val=0.2)
    done = train(split, table, rounds=1, finetune=1)
    assert done.history[-1]["finetuned_party_val_accuracy_mean"] is not None


def test_a_folder_that_waits_for_such_a_number_resumes_as_it_always_did(table, tmp_path):
    """Runs could be started that way once; a resumed one cannot leave the setting out."""
    split = niidpart.make(table, "homo", n_parties=3)
    how = {"model": "linear", "local_epochs": 1, "finetune": 1, "out": tmp_path / "run"}

    def stop(event):
        if isinstance(event, fltrain.RoundDone):
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fltrain.runs.requests.require_home_parts", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            fltrain.run(split, table, rounds=2, progress=stop, **how)
    assert len(fltrain.resume(tmp_path / "run", table).history) == 2
