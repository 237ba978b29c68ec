"""Labels of people, embeddings and a long tail from the command line."""

import json
import shlex

import numpy as np
import pytest

import niidpart


@pytest.fixture
def run(niidpart, tmp_path):
    """run(command): `niidpart` with the words of a command, in a folder of its own."""
    return lambda command: niidpart(*shlex.split(command), cwd=tmp_path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """people.npy and embeddings.npy, of the digits."""
    folder = tmp_path_factory.mktemp("beside")
    data = niidpart.load("digits")
    np.save(folder / "people.npy", np.where(np.arange(1437) % 4 == 0, 0, data.labels))
    np.savez(folder / "rows.npz", a=np.arange(1437 * 2).reshape(1437, 2) ** 2 % 97)
    return folder


def test_a_split_with_the_labels_of_people_is_made_and_verified(run, files):
    people = f"--noisy-labels {files}/people.npy"
    done = run(f"make --strategy dir --transform human-noise {people} -o human.h5")
    assert done.returncode == 0, done.stderr
    alone = run("verify human.h5")
    assert alone.returncode == 3
    assert "its stored draws were followed" in alone.stdout
    whole = run(f"verify human.h5 {people}")
    assert (whole.returncode, "the same split again" in whole.stdout) == (0, True)
    untrusted = run(f"verify human.h5 --untrusted {people}")
    assert (untrusted.returncode, "handed nothing" in untrusted.stderr) == (2, True)


def test_a_split_by_embeddings_is_made_and_verified(run, files):
    rows = f"--embeddings {files}/rows.npz:a"
    done = run(f"make --strategy semantic --clusters 5 {rows} -o semantic.h5")
    assert done.returncode == 0, done.stderr
    assert run("verify semantic.h5").returncode == 3
    assert run(f"verify semantic.h5 {rows}").returncode == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "--strategy dir --noisy-labels FILES/people.npy",
            "nothing reads it; add --transform human",
        ),
        ("--strategy dir --embeddings FILES/rows.npz", "nothing reads it; add --strategy semantic"),
        ("--strategy human-noise", "human-noise needs the labels that people gave"),
        ("--strategy human-noise --noisy-labels no.npy", "there is no file no.npy"),
        ("--strategy semantic --embeddings FILES/rows.npz:b", "has no array 'b'"),
        ("--strategy dir --long-tail 0.5", "it must be at least 1"),
        ("--strategy label-noise --rate 2", "at most 1"),
        ("--strategy dir --transform label-noise:rate=0.1,least=0.5", "least is the lower end"),
    ],
)
def test_what_cannot_be_is_refused(run, files, tmp_path, asked, said):
    done = run(f"make {asked.replace('FILES', str(files))}")
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_long_tail_and_noise_are_shown_and_made_again_by_the_command_that_is_shown(run, tmp_path):
    from niidpart.report.make_command import write_make_command

    asked = "--long-tail 10 --strategy power-law --transform label-noise:rate=0.4,least=0.1"
    done = run(f"make {asked} -o tail.h5 --json")
    assert done.returncode == 0, done.stderr
    read = niidpart.read(tmp_path / "tail.h5")
    command = write_make_command(read.source, "", read.recipe, "again.h5")
    words = shlex.join(shlex.split(command)[1:])
    assert run(words).returncode == 0
    assert niidpart.read(tmp_path / "again.h5").digest == read.digest
    assert json.loads(done.stdout)["digest"] == read.digest


def test_a_whole_number_is_looked_for_and_every_try_is_told(run):
    target = "--target effective-classes=0.5 --tolerance 0.06"
    done = run(f"make --strategy labels --parties 20 {target} -o k.h5")
    assert done.returncode == 0, done.stderr
    assert "k 1: effective-classes" in done.stderr
    assert "the plain value" in done.stderr
