"""What the tests of niidpart share: a small split file and ways to damage it."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import pytest

import niidpart

sys.path.append(str(Path(__file__).parent))  # corpus/ is tests' own and no test

from corpus import registry


@pytest.fixture(scope="session")
def small_split():
    """Everything that a file can hold: three parts, draws, moved rows, columns of a transform, a hint."""
    split = registry.small()
    assert all(part.n for part in split.parts.values())
    assert all(len(draw) for draw in split.draws.values())
    return split


@pytest.fixture(scope="session")
def small_data():
    """The data that the small split is of."""
    return niidpart.from_arrays(None, registry.LABELS)


@pytest.fixture(scope="session")
def small_file(small_split, tmp_path_factory):
    return niidpart.write(small_split, tmp_path_factory.mktemp("small") / "small.h5")


@pytest.fixture(scope="session")
def overlap_split():
    """A split in which parties share examples."""
    return registry.overlapping()


@pytest.fixture(scope="session")
def archive():
    """The folder of files that were written by earlier versions."""
    return Path(__file__).with_name("archive")


@pytest.fixture
def tampered(small_file, tmp_path):
    """tampered(edit, redigest=False): a copy of the small file after `edit(h5py.File)`; redigest: with digests that fit what it now holds."""

    def make(edit, redigest=False):
        path = Path(shutil.copy(small_file, tmp_path / "tampered.h5"))
        with h5py.File(path, "r+", libver=registry.NEW) as f:
            edit(f)
            if redigest:
                registry.put_manifest(f, registry.digested(f))
        return path

    return make


@pytest.fixture(scope="session")
def manifest():
    """manifest.read(f), manifest.put(f, dict or text), manifest.digested(f): with digests that fit what the file holds."""
    return SimpleNamespace(read=registry.read_manifest, put=registry.put_manifest, digested=registry.digested)


@pytest.fixture
def resave(tmp_path):
    """resave(split, **fields): the file of a split with other fields, all its digests right."""

    def make(split, **fields):
        return niidpart.write(replace(split, **fields), tmp_path / "resaved.h5")

    return make


@pytest.fixture(scope="session")
def told():
    """told(split): everything that can be read from a split, as a text."""
    return registry.told
