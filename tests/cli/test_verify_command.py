"""niidpart verify on the command line: exit codes, JSON for machines, files from elsewhere."""

import json

import numpy as np
import pytest

import niidpart


@pytest.fixture
def split_file(tmp_path):
    return niidpart.write(niidpart.make(niidpart.load("digits"), "dir", n_parties=5), tmp_path / "split.h5")


def test_json_is_complete(split_file, tmp_path, niidpart):
    done = niidpart("verify", "split.h5", "--json", cwd=tmp_path)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert set(found) == {"file", "faults", "derived", "why_not", "digest", "versions", "exit", "checked_by"}
    assert (found["file"], found["exit"], found["derived"], len(found["digest"])) == ("split.h5", 0, True, 64)


def test_faults_have_their_numbers(tmp_path, niidpart):
    (tmp_path / "text.h5").write_text("hello")
    done = niidpart("verify", "text.h5", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert [fault["rule"] for fault in json.loads(done.stdout)["faults"]] == [3]


def test_an_untrusted_file_is_verified_within_limits(split_file, tmp_path, niidpart):
    assert niidpart("verify", "split.h5", "--untrusted", cwd=tmp_path).returncode == 0
    late = niidpart("verify", "split.h5", "--untrusted", "--timeout", "0.001", "--json", cwd=tmp_path)
    assert (late.returncode, json.loads(late.stdout)["faults"][0]["rule"]) == (1, 6)
    assert niidpart("verify", "split.h5", "--untrusted", "--max-memory", "100", "--timeout", "30", cwd=tmp_path).returncode == 0


def test_the_hint_of_an_untrusted_file_is_not_followed(tmp_path, niidpart):
    np.savez(tmp_path / "data.npz", x=np.zeros((60, 2)), y=np.arange(60) % 3)
    assert niidpart("make", "--dataset", "data.npz", "--strategy", "homo", "-o", "s.h5", cwd=tmp_path).returncode == 0
    assert niidpart("verify", "s.h5", cwd=tmp_path).returncode == 0
    assert niidpart("verify", "s.h5", "--untrusted", cwd=tmp_path).returncode == 3
    assert niidpart("verify", "s.h5", "--untrusted", "--data-root", "data.npz", cwd=tmp_path).returncode == 0


def test_limits_without_untrusted_are_a_question_of_usage(split_file, tmp_path, niidpart):
    done = niidpart("verify", "split.h5", "--timeout", "3", cwd=tmp_path)
    assert done.returncode == 2
    assert "untrusted" in done.stderr
