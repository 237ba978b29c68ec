"""The rules that `replays.py` times, and what deals them by the peers' own code.

Packages come from environments of their own (`load_package`), other code from checkouts.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import published_runners
from published_runners import Case

N, PARTIES = 60_000, 10
LABELS = np.random.default_rng(12345).integers(0, 10, N)
VALUES = np.random.default_rng(54321).normal(size=N)  # a property of each example
TABLE = np.random.default_rng(2024).lognormal(0.0, 2.0, 2 * PARTIES).reshape(10, -1)
Call = Callable[[], Any]
# the strategy of a case is named after the peer unless the case says otherwise
CASES: dict[str, list[Case]] = {
    "flower": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "dir-balanced", "beta": 0.5},
        {"rule": "party-dir", "beta": 5.0},
        {"rule": "labels", "k": 2},
        {"rule": "shards", "shards": 2},
        {"rule": "homo"},
        {"rule": "linear"},
        {"rule": "square"},
        {"rule": "exponential"},
        {"strategy": "flower-distribution", "rule": "distribution", "k": 2, "preassigned": 5},
        {"strategy": "flower-continuous", "rule": "continuous", "strictness": 0.5},
    ],
    "fedlab": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "party-dir", "beta": 5.0},
        {"rule": "labels", "k": 2},
        {"rule": "shards", "shards": 2},
        {"rule": "homo"},
        {"rule": "lognormal", "sigma": 0.3},
        {"rule": "quantity", "beta": 0.5},
    ],
    "pfl": [{"rule": "party-dir", "beta": 0.5}],
    "fluke": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "labels", "k": 2},
        {"rule": "shards", "shards": 2},
        {"rule": "quantity"},
        {"rule": "homo"},
    ],
    "pfllib": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "labels", "k": 2},
        {"rule": "extended-dir", "beta": 0.5, "k": 2},
        {"rule": "homo"},
    ],
    "fl-bench": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "labels", "k": 2},
        {"rule": "shards", "shards": 2},
        {"rule": "homo"},
    ],
    "map004": [{"rule": "dir-balanced", "beta": 0.5}],
    "niidbench": [
        {"rule": "dir", "beta": 0.5},
        {"rule": "labels", "k": 2},
        {"rule": "quantity", "beta": 0.5},
        {"rule": "homo"},
    ],
    "feddyn": [
        {"rule": "party-dir", "beta": 5.0},
        {"rule": "homo"},
        {"rule": "homo", "sigma": 0.3},
    ],
    "fl-simulator": [
        {"rule": "party-dir", "beta": 0.6},
        {"rule": "labels", "k": 2},
        {"rule": "homo"},
    ],
    "fedcd": [{"rule": "hierarchical", "n_parties": 30}],
    "leaf": [
        {"rule": "group", "sampled": 1.0, "n_parties": 30},
        {"rule": "homo", "sampled": 0.5},
    ],
}


def find_flower() -> list[Call]:
    import datasets
    from flwr_datasets import partitioner

    columns = {"label": LABELS.tolist(), "row": range(N), "value": VALUES.tolist()}
    rows = datasets.Dataset.from_dict(columns)
    kinds = (
        lambda: partitioner.DirichletPartitioner(
            PARTIES, "label", 0.5, self_balancing=False, seed=0
        ),
        lambda: partitioner.DirichletPartitioner(
            PARTIES, "label", 0.5, self_balancing=True, seed=0
        ),
        lambda: partitioner.InnerDirichletPartitioner(
            [N // PARTIES] * PARTIES, "label", 5.0, seed=0
        ),
        lambda: partitioner.PathologicalPartitioner(PARTIES, "label", 2, seed=0),
        lambda: partitioner.ShardPartitioner(PARTIES, "label", 2, seed=0),
        lambda: partitioner.IidPartitioner(PARTIES),
        lambda: partitioner.LinearPartitioner(PARTIES),
        lambda: partitioner.SquarePartitioner(PARTIES),
        lambda: partitioner.ExponentialPartitioner(PARTIES),
        lambda: partitioner.DistributionPartitioner(TABLE, PARTIES, 2, "label", 5, seed=0),
        lambda: partitioner.ContinuousPartitioner(PARTIES, "value", 0.5, seed=0),
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
        lambda: f.client_inner_dirichlet_partition(
            LABELS, PARTIES, 10, 5.0, f.balance_split(PARTIES, N), verbose=False
        ),
        lambda: f.label_skew_quantity_based_partition(LABELS, PARTIES, 10, 2),
        lambda: f.shards_partition(LABELS, PARTIES, 2 * PARTIES),
        lambda: f.homo_partition(f.balance_split(PARTIES, N), N),
        lambda: f.homo_partition(f.lognormal_unbalance_split(PARTIES, N, 0.3), N),
        lambda: f.homo_partition(f.dirichlet_unbalance_split(PARTIES, N, 0.5), N),
    )
    return [lambda call=call: [list(call().values())] for call in calls]


def find_pfl() -> list[Call]:
    from pfl.data.partition import partition_by_dirichlet_class_distribution as deal

    return [lambda: [deal(LABELS, 0.5, lambda: N // PARTIES)[:PARTIES]]]


def find_fluke() -> list[Call]:
    import torch
    from fluke.data import DataSplitter as Splitter

    torch.set_num_threads(1)  # others that wait for work would count as CPU time
    given = (torch.tensor(LABELS), torch.tensor(LABELS), None, None, PARTIES)
    calls = (
        lambda: Splitter.label_dirichlet_skew(*given, beta=0.5),
        lambda: Splitter.label_quantity_skew(*given),
        lambda: Splitter.label_pathological_skew(*given, shards_per_client=2),
        lambda: Splitter.quantity_skew(*given),
        lambda: Splitter.iid(*given),
    )
    return [lambda call=call: [call()[0]] for call in calls]


PACKAGES = {
    "flower": ("flwr-datasets", find_flower),
    "fedlab": ("fedlab", find_fedlab),
    "pfl": ("pfl", find_pfl),
    "fluke": ("fluke", find_fluke),
}


def load_peer(peer: str, peers: Path | None, checkouts: Path | None) -> Iterator[tuple[Case, Call]]:
    """Yield each case and what deals it by the peer's code: nothing without the folder of that."""
    if peer in PACKAGES and peers is not None:
        yield from zip(CASES[peer], load_package(peer, peers), strict=True)
    elif peer not in PACKAGES and checkouts is not None:
        yield from zip(CASES[peer], load_code(peer, checkouts), strict=True)


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


def load_code(peer: str, folder: Path) -> list[Call]:
    """Return what deals each case by the code of a checkout."""
    names = published_runners.load_code(peer, (folder / peer).absolute())
    run = published_runners.RUNNERS[peer]
    plain = {"strategy": peer, "n_parties": PARTIES, "seed": 0}
    return [partial(run, names, LABELS, plain | case) for case in CASES[peer]]
