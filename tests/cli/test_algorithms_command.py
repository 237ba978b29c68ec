"""`fltrain algorithms`."""

import json

import pytest

from fltrain.algorithms import ALGORITHMS
from fltrain.catalogue.families import FAMILIES
from fltrain.engine import EXECUTORS

OWN = """
from dataclasses import replace
import torch
from fltrain.algorithms import ditto

FAMILY = "personal"
BASE = ditto()

def finish(task, local, work):
    upload, own = BASE.finish(task, local, work)
    return upload | {"seen": torch.ones(3, 4) * work.share}, own

def mine():
    '''Mine. Doe, Roe, ICML 2031, section 2: more goes up.'''
    return replace(BASE, name="mine", finish=finish)
"""


@pytest.fixture(scope="module")
def listed(fltrain, tmp_path_factory):
    done = fltrain("algorithms", "--json", cwd=tmp_path_factory.mktemp("algorithms"))
    return {one["name"]: one for one in json.loads(done.stdout)}


def test_every_algorithm_is_listed_with_all_that_is_asked_of_it(listed):
    assert sorted(listed) == ALGORITHMS.names()
    for name, one in listed.items():
        assert one["family"] in FAMILIES, name
        assert one["papers"], name
        assert len(one["about"]) > 20
        assert {"looped", "processes"} <= set(one["engines"]) <= set(EXECUTORS)
        assert {type(one["down"]), type(one["up"])} == {float}
        assert set(one["keeps"].values()) <= {"model", "layers", "numbers", "number"}


def test_there_is_no_family_without_an_algorithm_and_families_follow_each_other(listed):
    families = [one["family"] for one in listed.values()]
    assert list(dict.fromkeys(families)) == list(FAMILIES)
    assert families == sorted(families, key=list(FAMILIES).index)


@pytest.mark.parametrize(
    ("name", "keeps", "down", "up"),
    [
        ("fedavg", {}, (1, []), (1, [])),
        ("solo", {"params": "model"}, (0, []), (0, [])),
        ("scaffold", {"c": "model"}, (2, ["c"]), (2, ["c"])),
        ("ditto", {"params": "model"}, (1, []), (1, [])),
        ("balanced-softmax", {"counts": "numbers"}, (1, []), (1, [])),
    ],
)
def test_what_it_keeps_and_sends_is_what_its_paper_has(listed, name, keeps, down, up):
    one = listed[name]
    assert one["keeps"] == keeps
    assert ((one["down"], one["told"]), (one["up"], one["uploaded"])) == (down, up)


def test_layers_that_parties_keep_are_not_sent(listed):
    fedper, lg_fedavg = listed["fedper"], listed["lg-fedavg"]
    assert fedper["keeps"] == lg_fedavg["keeps"] == {"params": "layers"}
    assert fedper["down"] + lg_fedavg["down"] == pytest.approx(1, abs=2e-3)


def test_docs_have_the_same_families_and_engines(listed, project):
    page = (project / "docs" / "algorithms.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    told = {row[0].strip("| `"): (row[1], row[6]) for row in rows if len(row) == 8}
    for name, one in listed.items():
        # graph is in no row until its capture has run on a GPU
        tried = [engine for engine in EXECUTORS if engine != "graph"]
        without = [engine for engine in tried if engine not in one["engines"]]
        engines = f"all but {', '.join(without)}" if without else "all"
        assert told[name] == (one["family"], engines), name


def test_it_fits_a_terminal_of_80_columns(terminal, warm):
    text = terminal(80, [str(warm / "fltrain"), "algorithms", "fedsmoo", "scaffold", "fedproto"])
    lines = text.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert {"fedsmoo", "scaffold", "fedproto"} <= {line.split()[0] for line in lines if line}


def test_ones_own_is_described_by_what_it_does(fltrain, tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    [one] = json.loads(fltrain("algorithms", "mine.py:mine", "--json", cwd=tmp_path).stdout)
    assert (one["family"], one["papers"]) == ("personal", ["Doe, Roe, ICML 2031, section 2"])
    assert one["uploaded"] == ["seen"]
    assert one["up"] > 1  # although it has the `traffic` of what it starts from
    text = fltrain("algorithms", "mine.py:mine", cwd=tmp_path).stdout
    assert text.startswith("personal: ")


def test_a_name_that_is_none_is_said_to_be(fltrain, tmp_path):
    done = fltrain("algorithms", "fedprx", cwd=tmp_path)
    assert (done.returncode, "fedprox" in done.stderr) == (2, True)
