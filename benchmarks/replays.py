"""CPU seconds of a replay beside the peer's own code: python benchmarks/replays.py [--peers DIR]
[--checkouts DIR].

--peers: the environments of tests/niidpart/test_replays_peers.py (flwr-datasets, fedlab, fluke). --checkouts:
DIR/pfllib, DIR/fl-bench and DIR/map004, as benchmarks/published_code.py takes them. 60,000 labels of ten
classes among ten parties, both sides in turns in one process, seeded in the time measured; the best of
fifteen, after a look whether the rows are the same. Like for like is the rule alone, from labels to
who holds what. What the peer hands out may be pieces of an order, or data sets: "written down" it is as
what our rule returns, one owner a row or pairs of party and row. `make` is the whole `niidpart.make`,
with recipe, digests, counts and parts. Peers get arrays of labels, no files.
"""

import argparse
import contextlib
import io
import json
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import published_runners

import niidpart
from niidpart.strategies import STRATEGIES, Owners

N, PARTIES, REPEATS = 60_000, 10, 15
LABELS = np.random.default_rng(12345).integers(0, 10, N)
Call = Callable[[], Any]
CASES: dict[str, list[dict[str, Any]]] = {
    "flower": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "party-dir", "beta": 5.0},
        {"rule": "labels", "k": 2},
        {"rule": "shards", "shards": 2},
    ],
    "fedlab": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "labels", "k": 2},
        {"rule": "homo"},
        {"rule": "lognormal", "sigma": 0.3},
        {"rule": "quantity", "beta": 0.5},
    ],
    "fluke": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "labels", "k": 2},
        {"rule": "quantity"},
        {"rule": "homo"},
    ],
    "pfllib": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "labels", "k": 2},
        {"rule": "extended-dir", "beta": 0.5, "k": 2},
        {"rule": "homo"},
    ],
    "fl-bench": [{"rule": "dir", "beta": 0.5}, {"rule": "labels", "k": 2}, {"rule": "homo"}],
    "map004": [{"rule": "dir-balanced", "beta": 0.5}],
}
HEAD = (
    "replay | peer, CPU s | rule, CPU s | rule / peer | peer written down, CPU s | "
    "rule / that | make, CPU s | make / peer"
)


def find_flower() -> list[Call]:
    import datasets
    from flwr_datasets import partitioner

    rows = datasets.Dataset.from_dict({"label": LABELS.tolist(), "row": range(N)})
    kinds = (
        lambda: partitioner.DirichletPartitioner(
            PARTIES, "label", 0.5, self_balancing=False, seed=0
        ),
        lambda: partitioner.InnerDirichletPartitioner(
            [N // PARTIES] * PARTIES, "label", 5.0, seed=0
        ),
        lambda: partitioner.PathologicalPartitioner(PARTIES, "label", 2, seed=0),
        lambda: partitioner.ShardPartitioner(PARTIES, "label", 2, seed=0),
    )

    def deal(build: Call) -> list[list[Any]]:
        one = build()
        one.dataset = rows
        return [[one.load_partition(party) for party in range(PARTIES)]]

    return [partial(deal, build) for build in kinds]


def find_fedlab() -> list[Call]:
    from fedlab.utils.dataset import functional as f

    calls = (
        lambda: f.hetero_dir_partition(LABELS, PARTIES, 10, 0.5),
        lambda: f.label_skew_quantity_based_partition(LABELS, PARTIES, 10, 2),
        lambda: f.homo_partition(f.balance_split(PARTIES, N), N),
        lambda: f.homo_partition(f.lognormal_unbalance_split(PARTIES, N, 0.3), N),
        lambda: f.homo_partition(f.dirichlet_unbalance_split(PARTIES, N, 0.5), N),
    )
    return [lambda call=call: [list(call().values())] for call in calls]


def find_fluke() -> list[Call]:
    import torch
    from fluke.data import DataSplitter as Splitter

    given = (torch.tensor(LABELS), torch.tensor(LABELS), None, None, PARTIES)
    calls = (
        lambda: Splitter.label_dirichlet_skew(*given, beta=0.5),
        lambda: Splitter.label_quantity_skew(*given),
        lambda: Splitter.quantity_skew(*given),
        lambda: Splitter.iid(*given),
    )
    return [lambda call=call: [call()[0]] for call in calls]


PACKAGES = {
    "flower": ("flwr-datasets", find_flower),
    "fedlab": ("fedlab", find_fedlab),
    "fluke": ("fluke", find_fluke),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--checkouts", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| {HEAD} |\n|{' --- |' * 8}")
    for peer, cases in CASES.items():
        folder = asked.peers if peer in PACKAGES else asked.checkouts
        if folder is None:
            continue
        theirs = load_package(peer, folder) if peer in PACKAGES else load_code(peer, folder, cases)
        for case, run in zip(cases, theirs, strict=True):
            print(f"| `{peer}` {case['rule']} | {compare(peer, case, run)} |", flush=True)


def load_package(peer: str, folder: Path) -> list[Call]:
    """Return what deals each case by a package of an environment.

    What is installed here too, numpy first of all, is taken from here.
    """
    environment, find = PACKAGES[peer]
    python = folder.absolute() / environment / "bin" / "python"
    tell = [python, "-c", "import json, sys; print(json.dumps(sys.path[1:]))"]
    told = subprocess.run(tell, capture_output=True, text=True, check=True)
    sys.path += json.loads(told.stdout)
    return find()


def load_code(peer: str, folder: Path, cases: list[dict[str, Any]]) -> list[Call]:
    """Return what deals each case by the code of a checkout."""
    names = published_runners.load_code(peer, folder / peer)
    run = published_runners.RUNNERS[peer]
    plain = {"strategy": peer, "n_parties": PARTIES, "seed": 0}
    return [partial(run, names, LABELS, plain | case) for case in cases]


def compare(peer: str, case: dict[str, Any], run: Call) -> str:
    """Return the cells of a row. run: by the peer's code, [part][party] rows."""
    rule = partial(STRATEGIES.find(peer), LABELS, n_parties=PARTIES, rng=None, seed=0, **case)
    make = partial(niidpart.make, LABELS, peer, n_parties=PARTIES, seed=0, **case)
    write = write_owners if isinstance(rule(), Owners) else write_pairs
    require_same_rows(make(), seed_and_run(run))
    theirs, ours, written, whole = measure(run, rule, lambda: write(run()), make)
    ratio = f"{theirs:.5f} | {ours:.5f} | {ours / theirs:.2f} | {written:.5f}"
    return f"{ratio} | {ours / written:.2f} | {whole:.5f} | {whole / theirs:.2f}"


def require_same_rows(split: niidpart.FederatedSplit, parts: Sequence[Sequence[Any]]) -> None:
    for name, held in zip(("train", "test"), parts, strict=False):
        for party, rows in enumerate(held):
            ours = split.parts[name].party(party)
            np.testing.assert_array_equal(np.sort(list_rows(rows)), ours)


def list_rows(held: Any) -> np.ndarray:
    """Return the rows that a party holds, which may come as a data set."""
    return np.asarray(held["row"] if hasattr(held, "column_names") else held, np.int64)


def write_owners(parts: Sequence[Sequence[Any]]) -> np.ndarray:
    owner = np.full(N, -1, np.int64)
    for party, held in enumerate(parts[0]):
        owner[list_rows(held)] = party
    return owner


def write_pairs(parts: Sequence[Sequence[Any]]) -> list[tuple[np.ndarray, np.ndarray]]:
    pairs = []
    for part in parts:
        rows = [list_rows(held) for held in part]
        pairs.append((np.repeat(np.arange(PARTIES), list(map(len, rows))), np.concatenate(rows)))
    return pairs


def measure(*sides: Call) -> list[float]:
    """Return the least CPU seconds of each side, all in turns."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(REPEATS):
        for run, of_side in zip(sides, times, strict=True):
            start = time.process_time()
            seed_and_run(run)
            of_side.append(time.process_time() - start)
    return [min(of_side) for of_side in times]


def seed_and_run(run: Call) -> Any:
    np.random.seed(0)  # noqa: NPY002  of the peer's code
    random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        return run()


if __name__ == "__main__":
    main()
