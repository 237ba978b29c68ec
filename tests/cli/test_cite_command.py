"""`niidpart cite`: BibTeX whose command makes the split again, JSON, a file that is none."""

import json
import re

import pytest

import niidpart as package

# Shown, as whoever imports rows of no known data sees it.
pytestmark = pytest.mark.filterwarnings("always:of which data the rows are")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cite")
    split = package.make(package.load("digits"), "party-dir", n_parties=5, beta=0.3, seed=4)
    package.write(split, folder / "split.h5")
    return folder


def test_the_command_that_is_printed_makes_the_split(folder, niidpart):
    done = niidpart("cite", "split.h5", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    spelt = re.search(r"Made by \\texttt\{(.*)\}\},$", done.stdout, re.MULTILINE)[1]
    words = spelt.replace("-{}-", "--").replace("\\_", "_").split()
    assert words[:2] == ["niidpart", "make"]
    assert niidpart(*words[1:], "-o", "again.h5", cwd=folder).returncode == 0
    assert package.read(folder / "again.h5").digest == package.read(folder / "split.h5").digest


def test_json(folder, niidpart):
    found = json.loads(niidpart("cite", "split.h5", "--json", cwd=folder).stdout)
    assert found["digest"] == package.read(folder / "split.h5").digest
    keys = [work["key"] for work in found["works"]]
    assert keys == ["alpaydin1998digits", "cha2025quantity", f"split-{found['digest'][:12]}"]
    for work in found["works"]:
        assert f"{{{work['key']},\n" in work["bibtex"]


def test_what_another_program_made_has_no_rule_to_cite(folder, niidpart):
    (folder / "rows.json").write_text("[[0, 1, 2], [3, 4]]")
    imported = ("import", "rows.json", "--dataset", "digits", "-o", "imported.h5")
    assert niidpart(*imported, cwd=folder).returncode == 0
    done = niidpart("cite", "imported.h5", cwd=folder)
    assert "% strategy imported: no paper is known; cite whose rule it is" in done.stdout
    assert "No command makes it again: another program chose who holds what" in done.stdout


def test_a_published_name_and_a_slip_of_it(folder, niidpart):
    found = json.loads(niidpart("cite", "fedsam/cifar10-a0.50", "--json", cwd=folder).stdout)
    keys = [work["key"] for work in found["works"]]
    assert keys == ["krizhevsky2009tiny", "caldarola2022flat", "published-fedsam-cifar10-a0.50"]
    assert found["digest"] == ""
    shown = niidpart("registry", "show", "fedsam/cifar10-a0.50", cwd=folder).stdout
    assert "niidpart cite fedsam/cifar10-a0.50" in shown
    done = niidpart("cite", "fedsam/cifar10-a0.5", cwd=folder)
    assert done.returncode == 2
    assert "did you mean 'fedsam/cifar10-a0.50'" in done.stderr


def test_a_file_that_is_none(folder, niidpart):
    (folder / "none.h5").write_text("none")
    done = niidpart("cite", "none.h5", cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert "none.h5" in done.stderr
