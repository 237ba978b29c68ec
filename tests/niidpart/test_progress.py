"""Long work says how far it is to whoever listens, and to nobody else."""

import os

import numpy as np
import pytest

import niidpart
from niidpart.disk import progress
from niidpart.disk.progress import listen, tell


@pytest.fixture
def told():
    """What was told so far: (what is done, how much, of how much)."""
    return []


@pytest.fixture
def note(told):
    return lambda *step: told.append(step)


@pytest.fixture
def all_is_long(monkeypatch):
    monkeypatch.setattr(progress, "_LONG_ROWS", 0)
    monkeypatch.setattr(progress, "_LONG_BYTES", 0)


@pytest.fixture
def table(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow, which reads tables, is not installed")
    path = tmp_path / "table.csv"
    rows = [f"{i},{i % 3}" for i in range(90)]
    path.write_text("\n".join(["age,label", *rows]) + "\n")
    return path


def test_who_listens_is_told_and_nobody_before_or_after(told, note):
    tell("early", 1, 2)
    with listen(note):
        tell("sorting", 1, 2)
        with listen(lambda *_: None):
            tell("inside", 1, 2)
    tell("late", 1, 2)
    assert told == [("sorting", 1, 2)]


def test_whoever_raises_is_listened_to_no_longer(told, note):
    with pytest.raises(OSError), listen(note):  # noqa: PT011
        raise OSError
    tell("late", 1, 2)
    assert told == []


@pytest.mark.usefixtures("all_is_long")
def test_verify_tells_of_reading_counting_and_digesting(table, told, note, tmp_path):
    path = niidpart.write(niidpart.make(niidpart.load(table), "homo"), tmp_path / "split.h5")
    assert niidpart.verify(path, told=note).exit_code == 0
    size = os.path.getsize(table) // 10**6
    assert ("reading train", 90, 90) in told
    assert ("digesting", 90, 90) in told
    assert ("counting classes of parties", 90, 90) in told
    assert ("looking for shared rows", 90, 90) in told
    assert ("digesting files (MB)", size, size) in told


@pytest.mark.usefixtures("all_is_long")
def test_arrays_tell_of_their_digests(told, note, tmp_path):
    np.savez(tmp_path / "own.npz", x=np.ones((60, 2)), y=np.arange(60) % 3)
    with listen(note):
        data = niidpart.load(tmp_path / "own.npz")
        assert told == [("digesting features (MB)", 0, 0)]
        assert data.source.n == 60
    assert told[1:] == [("digesting labels (MB)", 0, 0)]


def test_of_short_work_nothing_is_told(table, told, note, tmp_path):
    path = niidpart.write(niidpart.make(niidpart.load(table), "homo"), tmp_path / "split.h5")
    assert niidpart.verify(path, told=note).exit_code == 0
    assert told == []
