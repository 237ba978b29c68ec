"""Tables of runs that are no study: what diverged, and splits that are draws of one recipe."""

import json
import subprocess
import sys

import pytest

import fltrain
import niidpart
from fltrain import RunFolder
from fltrain.evidence.api import TableRequest, make_tables
from fltrain.evidence.comparing import JudgeRules
from fltrain.evidence.families import ComparisonWords
from niidpart.errors import FileFault

FEW = {"model": "linear", "rounds": 1, "local_epochs": 1, "engine": "looped"}
TESTS = TableRequest(tests=ComparisonWords(JudgeRules()))


@pytest.fixture(scope="module")
def draws(tmp_path_factory):
    """FedAvg and SOLO on three splits of one recipe, two seeds on each; and one run elsewhere."""
    folder = tmp_path_factory.mktemp("draws")
    data = niidpart.load("digits")
    for seed in range(3):
        split = niidpart.make(data, "dir", beta=0.3, n_parties=3, seed=seed)
        for algorithm in ("fedavg", "solo"):
            for order in range(2):
                out = folder / f"{algorithm}-{seed}-{order}"
                fltrain.run(split, algorithm=algorithm, seed=order, out=out, **FEW)
    other = niidpart.make(data, "dir", beta=9, n_parties=3, seed=0)
    fltrain.run(other, algorithm="fedavg", out=folder / "other", **FEW)
    return folder


def test_splits_that_differ_in_their_seed_alone_are_draws_of_one(draws):
    (table,) = make_tables(sorted(draws.glob("*-*")), TESTS)
    assert [(row.label, row.n) for row in table.rows] == [("fedavg", 6), ("solo", 6)]
    (family,) = table.families
    assert (
        family.over == "6 draws of split_seed, init_seed, order_seed on 3 splits, one pair a split"
    )
    (one,) = family.comparisons
    assert (one.verdict, one.statistics.n, one.needed) == ("refused", 3, 6)
    (told,) = table.notes[:1]
    assert "3 files differ in their seed alone (0, 1, 2), and are draws of one split" in told
    assert table.differences == []


def test_another_recipe_is_another_setting(draws):
    (table,) = make_tables(sorted(draws.glob("*")), TESTS)
    labels = [row.label for row in table.rows]
    assert len(labels) == 3
    assert [label.partition(" ")[0] for label in labels] == ["fedavg", "fedavg", "solo"]
    assert any("compared with nothing" in note for note in table.notes)
    assert any(line.startswith("split: ") for line in table.differences)


def test_a_missing_draw_is_a_missing_pair(draws):
    runs = [path for path in sorted(draws.glob("*-*")) if path.name != "solo-1-0"]
    (table,) = make_tables(runs, TESTS)
    (one,) = table.families[0].comparisons
    assert one.reason.startswith("1 of 6 pairs are missing: split_seed=1")
    assert "no run of solo" in one.reason


@pytest.fixture
def diverged(tmp_path):
    split = niidpart.make(niidpart.load("digits"), "dir", beta=0.3, n_parties=3)
    with pytest.raises(fltrain.engine.diverged.Diverged):
        fltrain.run(split, lr=1e30, out=tmp_path / "run", **FEW | {"model": "mlp", "rounds": 2})
    return tmp_path / "run"


def test_a_run_that_diverged_has_failed_and_its_cause_is_said(diverged):
    (table,) = make_tables([diverged])
    (record,) = table.rows[0].entries[0].records
    assert record.state == "failed"
    assert "the training loss is not finite" in record.cause
    assert table.notes == [f"{table.rows[0].label}: {diverged} failed ({record.cause}), so no mean"]


def test_a_divergence_counts_in_the_round_after_the_last_one_alone(diverged):
    whole = json.loads((diverged / "diverged.json").read_text())
    assert whole["round"] == len(RunFolder.open(diverged).history) + 1
    assert fltrain.verify(diverged).faults == []
    text = (diverged / "diverged.json").read_text()
    (diverged / "diverged.json").write_text(text.replace('"round": 1', '"round": 2'))
    with pytest.raises(FileFault, match="its digest differs"):
        make_tables([diverged])
    assert [fault.file for fault in fltrain.verify(diverged).faults] == ["diverged.json"]


def test_tables_and_pages_of_runs_load_no_torch(draws):
    """It takes seconds, in which nothing would be said."""
    code = (
        "import sys\n"
        "from fltrain.evidence.api import make_tables\n"
        "from fltrain.report.api import make_report\n"
        "runs = sys.argv[1:]\n"
        "assert make_tables(runs) and make_report(runs)\n"
        "print('torch' in sys.modules)"
    )
    runs = [draws / "fedavg-0-0", draws / "solo-0-0"]
    done = subprocess.run([sys.executable, "-c", code, *runs], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
