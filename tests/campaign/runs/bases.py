"""Good run folders, each with what `resume` loads of it."""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

import fltrain
import niidpart
from fltrain import RunFolder
from fltrain.checkpoints.state_digest import digest_state
from fltrain.runs.restoring import load_request

ARCHIVE = Path(__file__).resolve().parents[2] / "fltrain" / "archive" / "format-1"
N, FEATURES, CLASSES = 60, 4, 3
RUNS = {
    "fedavg": {"algorithm": "fedavg", "rounds": 3, "keep": "all"},
    "another seed": {"algorithm": "fedavg", "rounds": 3, "keep": "all", "seed": 1},
    "scaffold": {"algorithm": "scaffold", "rounds": 4, "keep": "all", "fraction": 0.4},
    "ditto": {"algorithm": "ditto", "rounds": 3, "keep": "last", "fraction": 0.4},
    "momentum": {"algorithm": "fedavgm", "rounds": 2, "keep": "every:2"},
}


class Kind(Enum):
    """What may stand in the place of a file."""

    LINK = "link"
    FOLDER = "folder"
    PIPE = "pipe"


Files = dict[str, bytes | Kind]


@dataclass(frozen=True)
class Loaded:
    """What `resume` goes on from: what was asked for, the round, the state after it, the history."""

    asked: str
    round: int
    state: str
    history: list[str]


@dataclass(frozen=True)
class Base:
    """A good folder: its files, its split, what is loaded of it, and its state after each round."""

    name: str
    files: dict[str, bytes]
    split: niidpart.FederatedSplit
    loaded: Loaded
    states: dict[int, str]

    @property
    def has_digests(self) -> bool:
        """Whether its files stand under digests: those of earlier formats do not."""
        return self.loaded is not None and b'"digest"' in self.files["config.json"]


def load(path: Path) -> Loaded:
    """Load a folder as `fltrain.resume` does before it trains: later rounds are cut off."""
    opened = RunFolder.open(path)
    with opened.lock():
        request = load_request(opened, algorithm=None, model=None, data_root=None, trust=False)
        round, state = opened.restore()
        opened.cut(round)
        opened.clean(request.settings.keep)
    algorithm = request.algorithm
    asked: list[Any] = [asdict(request.settings), algorithm.spec, algorithm.options]
    asked += [request.model, request.preset, request.data_root, request.split.digest]
    history = [json.dumps(metrics) for metrics in opened.history]
    return Loaded(json.dumps(asked, default=str), round, digest_state(state), history)


def make_bases(folder: Path) -> list[Base]:
    """All of them; the folder is for files on the way."""
    draw = np.random.default_rng(0)
    x = draw.random((N, FEATURES), np.float32)
    y = np.arange(N) % CLASSES
    data = niidpart.from_arrays(x, y, x[:9], y[:9])
    split = niidpart.make(data, "dir", n_parties=5, beta=1.0, min_size=2, seed=0, val=0.1)
    bases = []
    for name, how in RUNS.items():
        out = folder / name
        small = {"model": "linear", "local_epochs": 1, "batch_size": 16, "device": "cpu"}
        fltrain.run(split, data, out=out, **small, **how)
        bases.append(_look_through(name, out))
        shutil.rmtree(out)
    old = shutil.copytree(ARCHIVE / "whole", folder / "format 1")
    return [*bases, _look_through("format 1", old)]


def _look_through(name: str, folder: Path) -> Base:
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    store = RunFolder.open(folder).store
    states = {
        place.round: digest_state(store.read(place.round).state) for place in store.list_places()
    }
    split = niidpart.read(folder / "split.h5")
    return Base(name, files, split, load(folder), states)


def place(files: Files, folder: Path, outside: Path) -> None:
    """Write a folder. outside: what a link in it leads to."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is Kind.LINK:
            path.symlink_to(outside)
        elif data is Kind.FOLDER:
            path.mkdir()
        elif data is Kind.PIPE:
            os.mkfifo(path)
        else:
            path.write_bytes(data)
