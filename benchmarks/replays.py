"""CPU seconds of a replay beside the peer's own code: python benchmarks/replays.py [--peers DIR]
[--checkouts DIR].

--peers: the environments of tests/niidpart/test_replays_peers.py (flwr-datasets, fedlab, fluke). --checkouts:
DIR/pfllib and DIR/fl-bench, as benchmarks/published_code.py takes them. 60,000 labels of ten classes
among ten parties, the best of five. Like for like is the rule alone, from labels to who holds what;
`make` is the whole `niidpart.make`, with recipe, digests, counts and parts. Peers get arrays of
labels, no files.
"""

import argparse
import contextlib
import io
import json
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import published_runners

import niidpart
from niidpart.strategies import STRATEGIES

N, PARTIES = 60_000, 10
LABELS = np.random.default_rng(12345).integers(0, 10, N)
CASES: dict[str, list[dict[str, Any]]] = {
    "flower": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "party-dir", "beta": 5.0},
        {"rule": "labels", "k": 2},
        {"rule": "shards", "shards": 2},
    ],
    "fedlab": [{"rule": "dir", "beta": 0.5}, {"rule": "labels", "k": 2}, {"rule": "homo"}],
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
}
TIMED = """
import json, sys, time, warnings
import numpy as np

warnings.simplefilter("ignore")
y = np.random.default_rng(12345).integers(0, 10, 60_000)

def best(run):
    times = []
    for _ in range(5):
        np.random.seed(0)
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)
"""
PACKAGES = {
    "flower": (
        "flwr-datasets",
        """
import datasets
from flwr_datasets import partitioner as p
rows = datasets.Dataset.from_dict({"label": y.tolist()})
def deal(make):
    one = make()
    one.dataset = rows
    for i in range(10):
        one.load_partition(i)
print(json.dumps([best(lambda: deal(make)) for make in (
    lambda: p.DirichletPartitioner(10, "label", 0.5),
    lambda: p.InnerDirichletPartitioner([6000] * 10, "label", 5.0),
    lambda: p.PathologicalPartitioner(10, "label", 2),
    lambda: p.ShardPartitioner(10, "label", 2))]))
""",
    ),
    "fedlab": (
        "fedlab",
        """
from fedlab.utils.dataset import functional as f
print(json.dumps([best(run) for run in (
    lambda: f.hetero_dir_partition(y, 10, 10, 0.5),
    lambda: f.label_skew_quantity_based_partition(y, 10, 10, 2),
    lambda: f.homo_partition(f.balance_split(10, 60_000), 60_000))]))
""",
    ),
    "fluke": (
        "fluke",
        """
import torch
from fluke.data import DataSplitter as d
y = torch.tensor(y)
print(json.dumps([best(run) for run in (
    lambda: d.label_dirichlet_skew(y, y, None, None, 10, beta=0.5),
    lambda: d.label_quantity_skew(y, y, None, None, 10),
    lambda: d.quantity_skew(y, y, None, None, 10),
    lambda: d.iid(y, y, None, None, 10))]))
""",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--checkouts", type=Path)
    asked = parser.parse_args()
    print("| replay | peer, CPU s | rule, CPU s | rule / peer | make, CPU s | make / peer |")
    print("| --- | --- | --- | --- | --- | --- |")
    for peer, cases in CASES.items():
        folder = asked.peers if peer in PACKAGES else asked.checkouts
        if folder is None:
            continue
        theirs = time_package(peer, folder) if peer in PACKAGES else time_code(peer, folder, cases)
        for case, seconds in zip(cases, theirs, strict=True):
            rule = measure(lambda peer=peer, case=case: deal(peer, case))
            whole = measure(lambda peer=peer, case=case: replay(peer, case))
            cells = f"{rule:.4f} | {rule / seconds:.2f} | {whole:.4f} | {whole / seconds:.2f}"
            print(f"| `{peer}` {case['rule']} | {seconds:.4f} | {cells} |")


def deal(peer: str, case: dict[str, Any]) -> None:
    """Run the rule alone: it draws from no stream of ours."""
    STRATEGIES.find(peer)(LABELS, n_parties=PARTIES, rng=None, seed=0, **case)


def replay(peer: str, case: dict[str, Any]) -> None:
    niidpart.make(LABELS, peer, n_parties=PARTIES, seed=0, **case)


def measure(run: Callable[[], Any]) -> float:
    """Return the least CPU seconds of five runs."""
    times = []
    for _ in range(5):
        np.random.seed(0)  # noqa: NPY002  of the peer's code
        random.seed(0)
        start = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            run()
        times.append(time.process_time() - start)
    return min(times)


def time_package(peer: str, folder: Path) -> list[float]:
    environment, code = PACKAGES[peer]
    python = folder.absolute() / environment / "bin" / "python"
    done = subprocess.run([python, "-c", TIMED + code], capture_output=True, text=True, check=True)
    seconds: list[float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def time_code(peer: str, folder: Path, cases: list[dict[str, Any]]) -> list[float]:
    """Return the seconds of each case by the code of a checkout."""
    names = published_runners.load_code(peer, folder / peer)
    run = published_runners.RUNNERS[peer]
    plain = {"strategy": peer, "n_parties": PARTIES, "seed": 0}
    return [measure(lambda case=case: run(names, LABELS, plain | case)) for case in cases]


if __name__ == "__main__":
    main()
