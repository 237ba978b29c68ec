"""Files that want to do harm, or that something damaged: each reader refuses each file of the corpus by its rule, and opens no other."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import pytest
from corpus.build import ATTACKS, build

import niidpart
from niidpart.splitfile.faults import shorten_error

OUTLINE = {*range(1, 31), 36, 37, 40, 41, 42, 52}  # rules that `open` looks at before any value
READERS = ("check", "read", "verify")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """{attack: its file}"""
    return build(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def said(corpus, tmp_path_factory):
    """{attack: {reader: rules}}: all readers on all files, in one process with a gigabyte of memory."""
    folder, at = next(iter(corpus.values())).parent, tmp_path_factory.mktemp("at") / "at"
    command = [
        sys.executable,
        "-m",
        "corpus.child",
        str(folder),
        str(folder / "canary" / "secret.h5"),
        str(at),
    ]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, check=False, timeout=900
    )
    assert done.returncode == 0, (
        f"died ({done.returncode}) at {at.read_text()}: {done.stderr[-1000:]}"
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_by_the_rule_that_it_breaks(name, said):
    attack, found = ATTACKS[name], said[name]
    rules = found["check"]
    assert rules and set(rules) <= attack.rules if attack.may else rules == sorted(attack.rules)
    assert [found[reader] for reader in READERS] == [rules] * 3
    if attack.rules <= OUTLINE:
        assert found["open"] == rules
    else:  # what nobody asked for was not looked at
        assert found["open"] in (rules, "taken")


def test_no_attack_leads_to_another_file(said):
    if said[""] is None:
        pytest.skip("only Linux tells which files are opened")
    assert said[""], "the watch does not see who opens the canary"
    assert [name for name, found in said.items() if name and found["canary"]] == []


def test_every_rule_of_a_file_alone_has_an_attack(project):
    written = {
        int(n)
        for n in re.findall(
            r"^\| *(\d+) *\|", (project / "docs" / "format.md").read_text(), re.MULTILINE
        )
    }
    tried = set().union(*(attack.rules for attack in ATTACKS.values() if not attack.may)) | {18}
    # 5 to 7: test_untrusted.py.
    assert {n for n in written if n < 60} - tried == {5, 6, 7}
    assert len(ATTACKS) >= 60


def test_the_error_names_the_file_and_the_rule(corpus):
    with pytest.raises(
        niidpart.SplitError,
        match=r"soft_link\.h5 is no valid split file \(docs/format.md\): rule 10: /draws/alias is a soft",
    ) as caught:
        niidpart.read(corpus["soft_link"])
    assert caught.value.path == corpus["soft_link"]
    assert caught.value.faults == niidpart.check(corpus["soft_link"])


def test_what_hdf5_says_cannot_steer_a_terminal():
    said = shorten_error(OSError("Can't open object (\x1b[2J\x10-r`\x0ev)\nmore"))
    assert said == "Can't open object (?[2J?-r`?v)"


def test_all_faults_are_named_together(tampered):
    def edit(f):
        f["train/counts"][0, 0] = 1000
        f["test/counts"][0, 0] = 1000

    faults = niidpart.check(tampered(edit))
    assert [fault.rule for fault in faults] == [33, 33]
    assert "/train/" in str(faults[0])
    assert "/test/" in str(faults[1])


def test_41_nothing_is_drawn_for_the_parties_that_a_file_states(small_file, monkeypatch):
    from niidpart.splitfile import column_rules

    asked, real = [], column_rules.draw_columns
    monkeypatch.setattr(
        column_rules,
        "draw_columns",
        lambda recipe, *rest: asked.append(recipe.n_parties) or real(recipe, *rest),
    )
    assert niidpart.check(small_file) == []
    assert asked == [1]


def test_27_a_writer_keeps_to_it():
    with pytest.raises(ValueError, match="rule 27: the recipe has 17 transforms"):
        niidpart.splitfile.writing.to_bytes(
            niidpart.make([0, 1] * 20, "homo", n_parties=2, transforms=[("noise", {})] * 17)
        )


def test_a_file_that_is_cut_off_anywhere_is_refused(small_file, tmp_path):
    whole = small_file.read_bytes()
    for length in range(8, len(whole), 131):
        (tmp_path / "split.h5").write_bytes(whole[:length])
        assert {fault.rule for fault in niidpart.check(tmp_path / "split.h5")} <= {4, 18}
        for reader in (niidpart.read, niidpart.open):
            with pytest.raises(niidpart.SplitError):
                reader(tmp_path / "split.h5")


def test_data_sets_that_are_too_large_together_are_refused(small_file, monkeypatch):
    with h5py.File(small_file) as f:
        largest = max(f["manifest"].nbytes, f["skew/table"].nbytes)
    for most in (largest, largest - 1):  # the first allows each of them alone
        monkeypatch.setattr("niidpart.splitfile.guard.MAX_MEMORY", most)
        assert [fault.rule for fault in niidpart.check(small_file)] == [17]
