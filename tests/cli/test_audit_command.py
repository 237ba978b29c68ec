"""`niidpart audit`: the verdict first, JSON, exit codes, a picture."""

import json

import numpy as np
import pytest

import niidpart as package


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A split file, its rows as JSON, and the same with a row at two parties."""
    folder = tmp_path_factory.mktemp("audit")
    split = package.make(package.load("digits"), "dir", n_parties=10)
    package.write(split, folder / "split.h5")
    rows = [own.tolist() for own in split.train]
    (folder / "sound.json").write_text(json.dumps(rows))
    rows[1].append(rows[0][0])
    (folder / "faulty.json").write_text(json.dumps(rows))
    return folder


def test_a_split_file(folder, niidpart):
    done = niidpart("audit", "split.h5", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, *rest = done.stdout.splitlines()
    assert first.startswith("split.h5: sound; best explained by dir with beta = ")
    assert second == "read as a split file of niidpart (dir)"
    assert any(line.startswith("total-variation") for line in rest)
    assert any(line.startswith("party-dir") and "Hsu et al." in line for line in rest)


def test_what_others_publish_and_its_faults(folder, niidpart):
    done = niidpart("audit", "sound.json", "--dataset", "digits", cwd=folder)
    assert done.returncode == 0
    assert "read as rows by party in JSON" in done.stdout
    done = niidpart("audit", "faulty.json", "--dataset", "digits", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.startswith("faulty.json: faulty (row-shared); best explained by dir")
    done = niidpart("audit", "faulty.json", cwd=folder)
    assert (done.returncode, "no class is known" in done.stdout) == (1, True)
    assert done.stderr.startswith("add --dataset NAME --data-root DIR, NAME being the data set")
    told = json.loads(niidpart("audit", "faulty.json", "--json", cwd=folder).stdout)
    assert told["advice"] == done.stderr.strip()
    done = niidpart("audit", "sound.json", cwd=folder)
    assert (done.returncode, "data it is cannot be told" in done.stdout) == (3, True)


def test_json_and_the_picture(folder, niidpart):
    pytest.importorskip("matplotlib")
    done = niidpart(
        *("audit", "faulty.json", "--dataset", "digits", "--json", "--plot", "a.svg"), cwd=folder
    )
    told = json.loads(done.stdout)
    assert (done.returncode, told["exit"], told["picture"]) == (1, 1, "a.svg")
    [found] = told["findings"]
    assert (found["kind"], found["level"], found["n"]) == ("row-shared", "fault", 1)
    assert told["explanations"][0]["rule"] == "dir"
    assert told["skew"]["measures"]
    drawn = (folder / "a.svg").read_text()
    assert all(text in drawn for text in ("row-shared", "Hsu et al.", "alpha, 95 % interval"))
    again = niidpart(
        *("audit", "faulty.json", "--dataset", "digits", "--plot", "a.svg"), cwd=folder
    )
    assert again.stdout.endswith("drawn in a.svg, in the place of what was there\n")
    assert (folder / "a.svg").read_text() == drawn


def test_what_cannot_be_asked(folder, niidpart):
    np.savez(folder / "no.npz", y=np.ones(3))
    for arguments, code, said in (
        (("gone.json",), 1, "gone.json"),
        (("sound.json", "--plot", "a.png"), 2, "no class is known"),
        (("sound.json", "--dataset", "digits", "--plot", "a.gif"), 2, "end it in .png"),
        (("no.npz", "--dataset", "digits"), 1, "a list of whole numbers"),
        (("split.h5", "--trust-pickle"), 2, "takes no options of a format"),
        (("sound.json", "--from", "hf"), 2, "split.h5 in its folder"),
    ):
        done = niidpart("audit", *arguments, cwd=folder)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
        assert "Traceback" not in done.stderr
