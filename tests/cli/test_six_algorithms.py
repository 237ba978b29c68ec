"""The worked example, made anew at a small size: its plan as it is committed, on the digits alone.

All that stands beside the plan is made by the commands of outputs.sh, of two seeds in place of ten.
"""

import re
import shlex

import pytest

import fltrain as fltrain_package
from fltrain.studies.plans.plan_text import read_plan_text

SPLITS = ["labels", "features", "sizes"]
GIVEN = {"plan.toml", "outputs.sh"}


@pytest.fixture(scope="module")
def example(project):
    return project / "examples" / "six_algorithms"


@pytest.fixture(scope="module")
def outputs(example, fltrain, tmp_path_factory):
    """The folder with what outputs.sh makes of a small study, and what its commands said aside."""
    folder = tmp_path_factory.mktemp("six")
    plan = read_plan_text(example / "plan.toml").values
    small = plan | {
        "trials": 2,
        "fixed": plan["fixed"] | {"rounds": 1},
        "splits": [dict(split, dataset=["digits"]) for split in plan["splits"]],
    }
    done = fltrain_package.study(small, out=folder / "study", workers=1)
    assert done.standing.count("done") == 36
    lines = (example / "outputs.sh").read_text().splitlines()
    for line in lines:
        command, _, file = line.partition(" > ")
        words = shlex.split(command.replace('"$1"', "study"), comments=True)
        if words[:1] == ["fltrain"]:
            said = fltrain(*words[1:], cwd=folder)
            assert said.returncode == 0, said.stderr
            if file:
                (folder / file).write_text(said.stdout)
    return folder


def test_the_commands_make_all_that_is_committed(example, outputs):
    committed = {path.name for path in example.iterdir()} - GIVEN
    assert committed == {path.name for path in outputs.iterdir()} - {"study"}
    sizes = [(example / name).stat().st_size for name in committed]
    assert sum(sizes) < 3_000_000


def test_the_table_has_the_rows_and_the_comparisons_of_the_committed_one(example, outputs):
    ours, committed = [(one / "table.txt").read_text().splitlines() for one in (outputs, example)]
    assert [line.split()[0] for line in ours] == [line.split()[0] for line in committed]
    assert all(split in ours[1] for split in SPLITS)
    tests = (outputs / "tests.txt").read_text()
    assert tests.count("15 comparisons in pairs") == 3
    # two seeds carry no claim, so nothing is bold
    assert "is better" not in tests
    written = (outputs / "table.tex").read_text()
    assert written.count("\\\\\n") == 7
    assert "textbf" not in written


@pytest.mark.parametrize("name", ["curves", "parties", "skew", "pairs", "ranks"])
def test_a_figure_has_the_series_of_the_committed_one(example, outputs, name):
    """By the texts that an svg has beside its outlines; numbers are of other seeds."""
    texts = []
    for folder in (example, outputs):
        svg = (folder / f"{name}.svg").read_text()
        words = set(re.findall(r"<!-- (.*?) -->", svg))
        texts.append({one for one in words if one in ("fedavg", "fedprox", "scaffold", "solo")})
    assert texts[0] == texts[1]
    assert texts[0]


def test_the_page_says_what_the_table_says(outputs):
    page = (outputs / "report.html").read_text()
    assert "36 runs done" in page
    assert "<caption>test_accuracy %</caption>" in page  # the columns are called after the splits
    assert [one for one in SPLITS if f"<h3>{one}" in page] == SPLITS  # of the tests


def test_what_the_example_prints_in_bold_is_claimed_over_all_other_rows(example):
    lines = (example / "table.tex").read_text().splitlines()
    bold = [line for line in lines if "textbf" in line]
    assert len(bold) == 1
    assert bold[0].startswith("feddyn & \\textbf{")
    told = (example / "tests.txt").read_text()
    _, _, labels = told.partition("in labels dataset=digits: 15 comparisons")
    family, _, _ = labels.partition("\n\n")
    assert family.count("feddyn is better") == 5
