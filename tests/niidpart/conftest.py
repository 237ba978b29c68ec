"""What the tests of niidpart share: a small split file and ways to damage it."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

import niidpart


@pytest.fixture(scope="session")
def small_split():
    """Everything that a file can hold: three parts, draws, moved rows, columns of a transform, a hint."""
    labels = np.arange(60) * 7 % 3
    options = {"beta": 0.1, "min_size": 15, "val": 0.1, "test": 0.2, "transforms": [("noise", {"sigma": 0.1})]}
    data = replace(niidpart.from_arrays(None, labels), root="somewhere")
    split = niidpart.make(data, "dir", n_parties=3, seed=1, **options)
    assert all(part.n for part in split.parts.values())
    assert all(len(draw) for draw in split.draws.values())
    return split


@pytest.fixture(scope="session")
def small_data():
    """The data that the small split is of."""
    return niidpart.from_arrays(None, np.arange(60) * 7 % 3)


@pytest.fixture(scope="session")
def small_file(small_split, tmp_path_factory):
    return niidpart.write(small_split, tmp_path_factory.mktemp("small") / "small.h5")


@pytest.fixture(scope="session")
def archive():
    """The folder of files that were written by earlier versions."""
    return Path(__file__).with_name("archive")


@pytest.fixture(scope="session")
def refused():
    """refused(path, rule): `check` finds this one rule broken and no other, and `read` raises it with the path."""

    def look(path, rule):
        faults = niidpart.check(path)
        assert {fault.rule for fault in faults} == {rule}, faults
        with pytest.raises(niidpart.SplitError) as caught:
            niidpart.read(path)
        assert caught.value.faults == faults
        assert caught.value.path == path
        assert str(path) in str(caught.value)
        assert f"rule {rule}:" in str(caught.value)

    return look


@pytest.fixture
def tampered(small_file, tmp_path):
    """tampered(edit, redigest=False): a copy of the small file after `edit(h5py.File)`; redigest: with digests that fit what it now holds."""

    def make(edit, redigest=False):
        path = tmp_path / "tampered.h5"
        path.write_bytes(small_file.read_bytes())
        with h5py.File(path, "r+") as f:
            edit(f)
            if redigest:
                put_manifest(f, digested(f))
        return path

    return make


@pytest.fixture(scope="session")
def manifest():
    """manifest.read(f), manifest.put(f, dict or text), manifest.digested(f): with digests that fit what the file holds."""
    return SimpleNamespace(read=read_manifest, put=put_manifest, digested=digested)


@pytest.fixture
def with_manifest(tampered):
    """with_manifest(change, redigest=False): a copy of the small file whose manifest went through `change(dict)`, which may return a text."""

    def make(change, redigest=False):
        def edit(f):
            manifest = read_manifest(f)
            put_manifest(f, change(manifest) or manifest)

        return tampered(edit, redigest)

    return make


@pytest.fixture
def resave(tmp_path):
    """resave(split, **fields): the file of a split with other fields, all its digests right."""

    def make(split, **fields):
        return niidpart.write(replace(split, **fields), tmp_path / "resaved.h5")

    return make


def read_manifest(f):
    return json.loads(f["manifest"][()].tobytes())


def put_manifest(f, manifest):
    text = manifest if isinstance(manifest, str) else canonical(manifest)
    del f["manifest"]
    f["manifest"] = np.frombuffer(text.encode(), np.uint8)


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def sha(*chunks):
    return hashlib.sha256(b"".join(chunks)).hexdigest()


def digested(f):
    """The manifest with digests made anew, by nothing but hashlib and json: docs/format.md in few words."""

    def array(a):
        little = a.astype(a.dtype.newbyteorder("<"))
        return sha(canonical([little.dtype.str.replace("|", "<"), list(little.shape)]).encode(), little.tobytes())

    manifest = read_manifest(f)
    n_parties = manifest["recipe"]["n_parties"]
    parts, digests = {}, {}
    for name in ("train", "val", "test"):
        there = name in f
        indptr = f[name]["indptr"][()] if there else np.zeros(n_parties + 1)
        indices = f[name]["indices"][()] if there else np.zeros(0)
        parts[name] = digests[name] = sha(indptr.astype("<i8").tobytes(), indices.astype("<i8").tobytes())
        if there:
            digests[f"{name}/counts"] = array(f[name]["counts"][()])
    for group in ("draws", "parties"):
        digests |= {f"{group}/{name}": array(values[()]) for name, values in f.get(group, {}).items()}
    columns = {name: array(values[()]) for name, values in f.get("parties", {}).items()}
    whole = {"recipe": manifest["recipe"], "source": manifest["source"], "parts": parts, "columns": columns, "format": manifest["format"]["major"]}
    return manifest | {"digests": digests | {"split": sha(canonical(whole).encode())}}
