"""What the tests of fltrain share: small data, splits dealt by hand, short runs, comparison bit for bit."""

import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import fltrain
import niidpart
from fltrain import RunFolder, tree
from fltrain.studies.api import prepare_study, write_study
from niidpart.splits.part import make_empty_part
from niidpart.splits.part_making import make_part

from ._cells import add_to
from ._studies import FIXED, PLAN

SHORT = {
    "model": "hidden200",
    "rounds": 2,
    "local_epochs": 1,
    "batch_size": 8,
    "lr": 0.1,
    "device": "cpu",
    "threads": 1,
    "engine": "looped",  # many compare with torch bit for bit; tests of auto and of others name them
    "checkpoint_every": 1,
}


@pytest.fixture(scope="session")
def table():
    """90 training and 40 test rows of 6 floats in 3 classes, shifted by class so that there is something to learn."""
    rng = np.random.default_rng(0)
    y, y_test = np.arange(90) * 7 % 3, np.arange(40) % 3
    x, x_test = (rng.normal(size=(len(labels), 6)) + labels[:, None] for labels in (y, y_test))
    return niidpart.from_arrays(x.astype(np.float32), y, x_test.astype(np.float32), y_test)


@pytest.fixture(scope="session")
def table_split(table):
    """Five parties of unequal size, each with a validation and a test part."""
    split = niidpart.make(table, "quantity", n_parties=5, seed=3, beta=2.0, val=0.2, test=0.2)
    assert len(set(split.train.sizes.tolist())) > 2
    assert all(part.sizes.min() > 0 for part in split.parts.values())
    return split


@pytest.fixture(scope="module")
def own_cache(native_cache):
    """Code is compiled in a folder of the session's own while a file's tests run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(native_cache))
        yield


@pytest.fixture(scope="session")
def coloured():
    """120 training and 30 test images of 3 x 11 x 9 bytes in 4 classes."""
    rng = np.random.default_rng(2)

    def images(labels):
        noise = rng.integers(0, 200, (len(labels), 11, 9, 3))
        return (noise + 15 * labels[:, None, None, None]).astype(np.uint8)

    y, y_test = np.arange(120) * 7 % 4, np.arange(30) % 4
    return niidpart.from_arrays(images(y), y, images(y_test), y_test)


@pytest.fixture(scope="session")
def images():
    """50 training and 20 test images of 28 x 28 bytes in 10 classes: enough to step the papers' CNN."""
    rng = np.random.default_rng(1)
    return niidpart.from_arrays(
        rng.integers(0, 256, (50, 28, 28), np.uint8),
        np.arange(50) % 10,
        rng.integers(0, 256, (20, 28, 28), np.uint8),
        np.arange(20) % 10,
    )


@pytest.fixture(scope="session")
def text():
    """24 rows of 6 letters out of 5, and the one that follows each: 0 1 2 3 4 0 1 ..."""
    rows = (np.arange(24)[:, None] + np.arange(7)) % 5
    x, y = rows[:, :-1].astype(np.float32), rows[:, -1]
    return niidpart.from_arrays(x, y, x[:10], y[:10])


@pytest.fixture(scope="session")
def text_split(text):
    """Three parties with six rows each, and a test part."""
    return niidpart.make(text, "homo", n_parties=3, test=0.25, seed=1)


@pytest.fixture(scope="session")
def dealt():
    """dealt(data, owner, val, test): a split in which party owner[i] holds example i, -1 nobody; val and test likewise for those parts."""

    def deal(data, owner, val=None, test=None, n_parties=None, **options):
        n_parties, n_classes = n_parties or int(np.max(owner)) + 1, len(data.class_names)
        split = niidpart.make(data, "homo", n_parties=n_parties, **options)
        parts = {
            name: make_empty_part(n_parties, n_classes)
            if who is None
            else make_part(np.asarray(who), data.labels, n_parties, n_classes)
            for name, who in (("train", owner), ("val", val), ("test", test))
        }
        return replace(split, **parts)

    return deal


@pytest.fixture(scope="session")
def train():
    """train(split, data, ...): a short run by torch on the CPU, in memory unless `out` is given. hidden200 learns faster than the tables' MLP."""

    def run(split, data=None, **options):
        return fltrain.run(split, data, **add_to(SHORT, options))

    return run


@pytest.fixture(scope="session")
def same():
    """same(a, b): two trees with the same keys and, bit for bit, the same tensors."""

    def compare(a, b):
        if a.keys() != b.keys():
            return False
        return all(
            compare(a[k], b[k])
            if isinstance(a[k], dict)
            else a[k].dtype == b[k].dtype and torch.equal(a[k], b[k])
            for k in a
        )

    return compare


@pytest.fixture(scope="session")
def same_state(same):
    """same_state(a, b): two states, bit for bit."""
    return lambda a, b: all(
        same(getattr(a, part), getattr(b, part))
        for part in ("models", "buffers", "server", "parties")
    )


@pytest.fixture(scope="session")
def distance():
    """distance(a, b): the largest absolute difference between two trees of one shape."""
    return lambda a, b: max(
        (
            float((x.double() - y.double()).abs().max())
            for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True)
        ),
        default=0.0,
    )


class Float64(nn.Sequential):
    """Layers that calculate in double precision, so that formulas hold to 1e-12."""

    def __init__(self, *layers):
        super().__init__(*layers)
        self.double()

    def forward(self, x):
        return super().forward(x.double())


@pytest.fixture(scope="session")
def float64():
    """float64(*layers): a module of these layers in double precision."""
    return Float64


@pytest.fixture(scope="session")
def double():
    """double(): a small smooth network for the table, in double precision, always the same."""

    def network():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return Float64(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))

    return network


@pytest.fixture
def certify(record_property):
    """certify(name, gap, bound): hold an algorithm's difference to a second writing to its bound, and note it for docs/certificate.md."""

    def hold(name, gap, bound=1e-12):
        record_property("certified", (name, float(gap), bound))
        assert gap < bound

    return hold


@pytest.fixture(scope="session")
def started():
    """started(model): {name: [1, ...]}, the weights that a run of this module begins with."""
    return lambda model: {name: p.detach().unsqueeze(0) for name, p in model.named_parameters()}


@pytest.fixture(scope="session")
def outcome():
    """outcome(folder): the bytes of a run that the promise covers: configuration, metrics and the last checkpoint."""

    def read(folder):
        last = RunFolder.open(folder).store.list_places()[-1]
        files = [folder / "config.json", folder / "metrics.jsonl"]
        files += [folder / "checkpoints" / name for name in (last.head, last.tensors)]
        return {str(f.relative_to(folder)): f.read_bytes() for f in files}

    return read


@pytest.fixture(scope="session")
def cube_split():
    data = niidpart.load("fcube")
    return niidpart.make(data, "fcube")


@pytest.fixture(scope="session")
def folders(cube_split, train, tmp_path_factory):
    """(a run of 5 rounds that nothing stopped, the same as a kill just after the checkpoint of round 3 leaves it)"""
    whole, stopped = (tmp_path_factory.mktemp("runs") / name for name in ("whole", "stopped"))

    def copy(p):
        if isinstance(p, fltrain.RoundDone) and p.round == 3:
            shutil.copytree(whole, stopped)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib", None)
        train(cube_split, out=whole, model="linear", rounds=5, batch_size=512, progress=copy)
    return whole, stopped


@pytest.fixture
def whole(folders, tmp_path):
    return shutil.copytree(folders[0], tmp_path / "whole")


@pytest.fixture
def stopped(folders, tmp_path):
    return shutil.copytree(folders[1], tmp_path / "stopped")


@pytest.fixture(scope="session")
def everything():
    """everything(folder): the bytes of every file under it."""
    return lambda folder: {
        str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()
    }


@pytest.fixture
def study(tmp_path):
    """A study of four short cells, nothing of it trained."""
    return write_study(prepare_study(PLAN), tmp_path / "study")


@pytest.fixture
def long_study(tmp_path):
    """A study of one cell of 20 rounds."""
    plan = PLAN | {"algorithms": ["scaffold"], "fixed": FIXED | {"rounds": 20}}
    plan = plan | {"splits": [{"dataset": "digits", "beta": 0.5, "n_parties": 5}]}
    return write_study(prepare_study(plan), tmp_path / "study")
