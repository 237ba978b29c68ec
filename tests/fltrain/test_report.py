"""Pages on runs and studies: what stands in them, what they leave out, and what never runs there."""

import doctest
import json
import re
import shlex
from html import unescape

import numpy as np
import pytest
from html_page import HOSTILE, Page, require_accessible, require_safe
from report_runs import tell_again, train_one

import fltrain
import niidpart
from fltrain.evidence.api import TableRequest
from fltrain.evidence.comparing import JudgeRules, compare_in_pairs
from fltrain.evidence.families import ComparisonFamily, ComparisonWords
from fltrain.evidence.measures import RunMeasure
from fltrain.evidence.reading import RecordGroup
from fltrain.evidence.records import RunRecord
from fltrain.evidence.tables import TableAxes
from fltrain.report import api
from fltrain.report.api import make_report, write_report
from fltrain.report.curve_data import CurveRow, describe_curves
from fltrain.report.group_story import tell_group
from fltrain.report.page_runs import PageRun
from fltrain.report.party_data import describe_parties
from fltrain.report.run_command import write_run_command
from fltrain.report.sentences import tell_family
from fltrain.report.surroundings import list_environments, list_shared_settings, sum_costs
from fltrain.runs.folder import RunFolder
from niidpart.errors import UsageError

pytestmark = pytest.mark.usefixtures("warm_workers")

ACCURACY = RunMeasure("last", "test_accuracy %", lambda record: None)


@pytest.fixture(scope="module")
def split():
    return niidpart.make(niidpart.load("digits"), "dir", n_parties=6, beta=0.3, test=0.2)


@pytest.fixture(scope="module")
def runs(split, tmp_path_factory):
    """Eight seeds of two algorithms, of which the second is better on each."""
    folder = tmp_path_factory.mktemp("report")
    first = folder / "first"
    train_one(split, first)
    made = []
    for seed in range(8):
        for name, ahead in (("fedavg", 0.0), ("scaffold", 0.05 + 0.001 * seed)):
            shift = lambda round, ahead=ahead, seed=seed: 0.01 * round + 0.002 * seed + ahead  # noqa: E731
            made.append(tell_again(first, folder / f"{name}-{seed}", name, seed, shift))
    return made


@pytest.fixture(scope="module")
def text(runs):
    return make_report(runs)


def test_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(api, extraglobs={"niidpart": niidpart, "fltrain": fltrain})
    assert (done.attempted, done.failed) == (3, 0)


def test_a_page_of_runs_is_safe_and_complete(text, runs, split):
    page = require_safe(text)
    require_accessible(page)
    assert page.has_text("16 runs done")
    assert page.has_text(split.digest)
    assert page.has_text("scaffold is better than fedavg")
    assert page.has_text("over 8 pairs")
    assert page.has_text("came to its end")
    assert page.has_text("Linux" if page.has_text("Linux") else "Darwin")
    board = page.data["groups"][0]
    assert [row["label"] for row in board["rows"]] == ["fedavg", "scaffold"]
    assert [row["n"] for row in board["rows"]] == [8, 8]
    assert len(board["runs"]) == 16
    assert len(text) < 400_000


def test_the_numbers_of_a_page_are_those_of_the_runs(text, runs):
    page = Page(text)
    group = page.data["groups"][0]
    histories = [RunFolder.open(run).history for run in runs if "scaffold" in run.name]
    (row,) = [row for row in group["rows"] if row["label"] == "scaffold"]
    means = np.mean([[one["test_accuracy"] for one in history] for history in histories], axis=0)
    assert row["y"]["test_accuracy"] == pytest.approx(means, rel=1e-5)
    deviations = np.std([[one["test_accuracy"] for one in h] for h in histories], axis=0, ddof=1)
    assert row["d"]["test_accuracy"] == pytest.approx(deviations, rel=1e-4)
    moved = sum(one["bytes_down"] + one["bytes_up"] for one in histories[0])
    assert row["x"]["bytes"][-1] == pytest.approx(moved / 1e6, rel=1e-5)
    told = group["parties"]["runs"][-1]
    values = histories[-1][-1]["party_test_accuracy"]
    parts = group["parties"]["parts"]
    assert [value / parts for value in told["last"]["values"]] == pytest.approx(values, abs=1e-4)
    assert (
        page.data["sizes"][told["split"]]
        == niidpart.read(runs[0] / "split.h5").train.sizes.tolist()
    )


def test_a_board_is_sorted_by_numbers_that_its_cells_carry(text):
    page = Page(text)
    values = [
        one["data-value"] for name, one in page.elements if name == "td" and "data-value" in one
    ]
    assert values
    assert all(value == "" or float(value) == float(value) for value in values)
    assert '<td class=" best"' in text  # seven pairs and more carry one claim


def test_what_a_study_calls_things_stays_text(tmp_path):
    rows = [f"{i % 3},{i % 7},name{i % 2}{HOSTILE.replace(chr(34), chr(39))}" for i in range(120)]
    data = tmp_path / "hostile.csv"
    data.write_text("\n".join(["x,y,label", *rows]), encoding="utf-8")
    plan = {
        "name": f"study {HOSTILE}",
        "algorithms": [
            {"name": "fedavg", "label": HOSTILE},
            {"name": "fedavg", "label": "{{ 1 }}", "lr": 0.5},
        ],
        "splits": [
            {
                "dataset": "csv",
                "data_root": str(data),
                "n_parties": 3,
                "test": 0.2,
                "name": "<b>split</b>",
            }
        ],
        "fixed": {"model": "linear", "rounds": 1, "local_epochs": 1, "batch_size": 20},
    }
    done = fltrain.study(plan, out=tmp_path / "study", workers=1)
    text = make_report([done.folder])
    page = require_safe(text)
    assert [row["label"] for row in page.data["groups"][0]["rows"]] == [HOSTILE, "{{ 1 }} lr=0.5"]
    assert page.texts.count(HOSTILE)
    assert page.has_text("name0</script>")
    assert page.has_text(f"study {HOSTILE}")
    # The plan that is shown is the one that was given, and gives the study again, where the data
    # lie beside it: of a path of the author's machine the last part is shown.
    (plan_text,) = re.findall(r"<pre tabindex=\"0\">(.*?)</pre>", text, re.DOTALL)
    plan["splits"][0]["data_root"] = data.name
    assert json.loads(unescape(plan_text)) == plan
    assert str(tmp_path) not in text
    assert page.has_text("fltrain.study(json.load")


def test_the_command_of_a_run_trains_it_again(split, tmp_path):
    from niidpart_cli.train import main

    asked = {
        "algorithm": fltrain.algorithms.fedprox(mu=0.3),
        "lr": 0.05,
        "lr_drops": (1,),
        "clip_norm": 5.0,
    }
    train_one(split, tmp_path / "one", **asked, metrics=["macro-f1"], shuffle=False, seed=3)
    config = RunFolder.open(tmp_path / "one").config
    file = niidpart.write(split, tmp_path / "split file.h5")
    command = write_run_command(config, str(file), str(tmp_path / "two"))
    assert " --engine " in command
    words = shlex.split(command)
    assert words[:2] == ["fltrain", "run"]
    main(words[1:], standalone_mode=False)
    first, second = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("one", "two")]
    assert first == second


def test_one_run_has_a_page_and_says_why_nothing_is_compared(runs):
    page = require_safe(make_report(runs[:1]))
    require_accessible(page)
    assert page.has_text("nothing to compare it with")
    assert page.has_text("Run fedavg-0")


def test_tests_that_nobody_asked_for_are_left_out_with_the_reason_and_others_are_an_error(runs):
    against = TableRequest(tests=ComparisonWords(JudgeRules(), against="nobody"))
    with pytest.raises(UsageError, match="no row 'nobody'"):
        make_report(runs, against, needs_tests=True)
    with pytest.raises(UsageError, match="no axis"):
        make_report(runs, TableRequest(axes=TableAxes(by=("nothing",))))
    page = Page(make_report(runs, against))
    assert page.has_text("No tests: there is no row 'nobody'")


def test_runs_that_failed_or_have_not_ended_are_shown_and_counted(tmp_path):
    plan = {
        "name": "some",
        "algorithms": ["fedavg", {"name": "fedavg", "label": "wild", "lr": 1e30}],
        "splits": [{"dataset": "digits", "n_parties": 4}],
        "fixed": {"model": "mlp", "rounds": 3, "local_epochs": 1},
    }
    with pytest.warns(UserWarning, match="1 cells failed"):
        done = fltrain.study(plan, out=tmp_path / "study", workers=1)
    page = Page(make_report([done.folder]))
    assert page.has_text("1 run done")
    assert page.has_text("1 failed")
    assert page.has_text("Diverged")
    assert page.has_text("wild")


def test_a_study_in_which_nothing_is_done_is_refused(study):
    with pytest.raises(UsageError, match="nothing to show"):
        make_report([study.path])


def test_a_page_is_written_whole(runs, tmp_path):
    path = write_report(runs[:2], tmp_path / "there" / "page.html")
    assert path.read_text().endswith("</html>")
    assert [one.name for one in path.parent.iterdir()] == ["page.html"]


def history_of(rounds, parties=0, metrics=()):
    of_parties = (
        {"party_test_accuracy": [0.5] * parties, "party_test_accuracy_mean": 0.5} if parties else {}
    )
    line = {"lr": 0.1, "bytes_down": 10, "bytes_up": 10, "seconds": 1.0, "test_accuracy": 0.5}
    return [
        {"round": i, **line, **dict.fromkeys(metrics, 0.25), **of_parties}
        for i in range(1, rounds + 1)
    ]


def page_run(tmp_path, name, **how):
    return PageRun(tmp_path / name, history_of(**how), {"split": "0" * 64}, {})


def test_long_curves_keep_their_ends_and_the_page_its_size(tmp_path):
    run = page_run(tmp_path, "long", rounds=5000)
    told, more = describe_curves([CurveRow("long", [run])])
    rounds = told["rows"][0]["x"]["rounds"]
    assert len(rounds) == 300
    assert (rounds[0], rounds[-1]) == (1, 5000)
    assert told["rows"][0]["x"]["bytes"][-1] == 0.1
    assert more == []


def test_metrics_without_room_are_named(tmp_path):
    metrics = [f"test_m{i}" for i in range(20)]
    run = page_run(tmp_path, "one", rounds=100, metrics=metrics)
    rows = [CurveRow(f"r{i}", [run]) for i in range(20)]
    told, more = describe_curves(rows, most=30_000)
    shown = [metric["name"] for metric in told["metrics"]]
    assert shown[0] == "test_accuracy"
    assert more
    assert sorted([*shown, *more]) == sorted(["lr", "test_accuracy", *metrics])
    assert len(json.dumps(told)) < 30_000 * 12


def test_a_group_of_which_every_run_failed_has_a_story():
    records = [
        RunRecord(
            name, {"algorithm": name, "order_seed": 0}, "0" * 64, state="failed", cause="Diverged"
        )
        for name in ("a", "b")
    ]
    group = RecordGroup("s", "s", records, derive=lambda metric: {})
    request = TableRequest(tests=ComparisonWords(JudgeRules()))
    story = tell_group(group, {}, request, needs_tests=False, n_groups=1)
    assert [one.name for one in story.failed] == ["a", "b"]
    assert [row["n"] for row in story.data["rows"]] == [0, 0]
    assert story.data["metrics"] == story.data["parties"]["runs"] == []
    (said,) = story.families[0].sentences
    assert said.kind == "refused"
    assert "a failed" in said.text
    assert list_environments([]) == []
    assert sum_costs([]).n_rounds == 0
    assert list_shared_settings([]).chosen == []


def test_paths_of_a_users_own_are_told_by_their_last_part(runs):
    config = RunFolder.open(runs[0]).config
    own = {"name": "mine", "spec": "/home/anna/mine.py:build", "options": {}}
    theirs = {
        "algorithm": own,
        "model": "/home/anna/net.py:net",
        "init_from": {"path": "/home/anna/w.pt"},
    }
    command = write_run_command(config | theirs, "split.h5", "out")
    assert "--algorithm mine.py:build --model net.py:net --init-from w.pt" in command
    assert "anna" not in command
    text = make_report(runs)
    assert str(runs[0].parent) not in text
    unlike = config | {"model": "/home/anna/net.py:net+/home/anna/net.py:wide"}
    shared = list_shared_settings([PageRun(runs[0], [], unlike, {})])
    assert ("model", "net.py:net+net.py:wide") in shared.chosen


def test_times_that_end_early_have_no_places_from_there_on(tmp_path):
    history = history_of(rounds=4)
    history[2]["seconds"] = None
    run = PageRun(tmp_path, history, {"split": "0" * 64}, {})
    told, _ = describe_curves([CurveRow("one", [run])])
    assert told["rows"][0]["x"]["seconds"] == [1, 2, None, None]
    assert told["rows"][0]["y"]["test_accuracy"] == [0.5] * 4


def test_parties_are_shown_at_the_last_and_at_the_best_round_of_as_many_runs_as_have_room(tmp_path):
    run = page_run(tmp_path, "one", rounds=3, parties=4)
    run.history[1]["test_accuracy"] = 0.9
    run.history[1]["party_test_accuracy"] = [0.1, None, 1.0, 0.25]
    told, left_out = describe_parties([CurveRow("a", [run]), CurveRow("b", [run])], most=8)
    assert left_out == 1
    (shown,) = told["runs"]
    assert shown["best"] == {"round": 2, "values": [1000, None, 10000, 2500]}
    assert shown["last"] == {"round": 3, "values": [5000] * 4}
    assert shown["whose"] == "the models that parties are served"


def family_of(values, **rules):
    found = compare_in_pairs(values, rules=JudgeRules(**rules))
    return ComparisonFamily("", "test_accuracy %", 0.05, "8 draws", found, len(found))


def test_a_claim_is_told_from_the_better_one_with_its_interval():
    values = {"a": [0.5] * 8, "b": [0.61, 0.62, 0.6, 0.61, 0.62, 0.6, 0.61, 0.62]}
    story = tell_family(family_of(values), ACCURACY)
    (said,) = story.sentences
    assert said.kind == "claim"
    assert said.text.startswith(
        "b is better than a: test_accuracy % differs by 11.12 percentage points"
    )
    low, high = re.search(r"interval ([\d.]+) to ([\d.]+)", said.text).groups()
    assert float(low) < 11.12 < float(high)
    assert said.text.endswith("p = 0.0078.")


def test_no_evidence_and_what_could_not_be_claimed_are_told_as_such():
    luck = [0.01, -0.012, 0.02, -0.018, 0.005, -0.004, 0.011, -0.013]
    values = {"a": [0.5] * 8, "b": [0.5 + one for one in luck]}
    (said,) = tell_family(family_of(values, wanted=0.01), ACCURACY).sentences
    assert said.kind == "none"
    assert said.text.startswith("No evidence of a difference between a and b")
    assert "8 of 10 such studies" in said.text
    assert "The wanted difference takes" in said.text
    (refused,) = tell_family(family_of({"a": [0.1, 0.2], "b": [0.3, 0.4]}), ACCURACY).sentences
    assert refused.kind == "refused"
    assert "it takes 6 pairs" in refused.text
    (equal,) = tell_family(family_of({"a": [0.5] * 8, "b": [0.5] * 8}), ACCURACY).sentences
    assert equal.text == "a and b are equal in every pair, of 8."


def test_claims_come_first_and_the_others_as_far_as_there_is_room():
    luck = [0.01, -0.012, 0.02, -0.018, 0.005, -0.004, 0.011, -0.013]
    values = {"a": [0.5] * 8, "b": [0.5 + one for one in luck], "c": [0.5 - one for one in luck]}
    family = family_of(values | {"d": [0.7] * 8})
    story = tell_family(family, ACCURACY, most=4)
    assert [one.kind for one in story.sentences] == ["claim", "claim", "claim", "none"]
    assert story.left_out == 2
