"""What the tests of niidpart share: a small split file and ways to damage it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import pytest

import niidpart

sys.path.append(str(Path(__file__).parent))  # corpus/ is tests' own and no test

from corpus import registry
from hub_client import GENERATIONS, OTHER, Client
from hub_server import LocalHub


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
    return SimpleNamespace(
        read=registry.read_manifest, put=registry.put_manifest, digested=registry.digested
    )


@pytest.fixture
def resave(tmp_path):
    """resave(split, **fields): the file of a split with other fields, all its digests right."""

    def make(split, **fields):
        return niidpart.write(replace(split, **fields), tmp_path / "resaved.h5", overwrite=True)

    return make


@pytest.fixture(scope="session")
def told():
    """told(split): everything that can be read from a split, as a text."""
    return registry.told


@pytest.fixture(scope="session")
def _hub():
    with LocalHub() as found:
        yield found


@pytest.fixture
def hub(_hub):
    """A Hub on loopback without repositories, which does what it should until `hub.spoil` is set."""
    for state in (_hub.repos, _hub.objects, _hub.seen, _hub.chatty):
        state.clear()
    _hub.spoil = None
    return _hub


@pytest.fixture(scope="module", params=GENERATIONS)
def _client(request, _hub, tmp_path_factory):
    python = GENERATIONS[request.param]
    if python is None:
        pytest.skip(f"{OTHER} names no python with the other generation of the Hub's client")
    found = Client(python, _hub.url, tmp_path_factory.mktemp("client") / "home")
    yield found
    found.close()


@pytest.fixture
def client(hub, _client):
    """A process with a released client of that Hub; each test runs with each generation of it."""
    return _client


# Peers' own packages run offline, and tell nobody.
OFFLINE = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
}


@pytest.fixture
def peer(tmp_path, project):
    """peer(name, code, *arguments): what `code` prints last, as JSON, run by the python that has the peer."""

    def run(name, code, *arguments):
        folder = os.environ.get("NIIDPART_TEST_PEERS")
        if not folder:
            pytest.skip("NIIDPART_TEST_PEERS names no folder of environments with the peers")
        if name in os.environ.get("NIIDPART_TEST_PEERS_WITHOUT", "").split(","):
            pytest.skip(f"NIIDPART_TEST_PEERS_WITHOUT leaves {name} out")
        python = Path(folder).absolute() / name / "bin" / "python"
        assert python.exists(), (
            f"there is no {python}; make that environment, or name {name} in NIIDPART_TEST_PEERS_WITHOUT"
        )
        env = os.environ | OFFLINE | {"HF_HOME": str(tmp_path / "hf"), "PYTHONPATH": str(project)}
        done = subprocess.run(
            [python, "-c", code, *map(str, arguments)],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run
