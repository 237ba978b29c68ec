"""Digests of the splits that published code gives, for peers that are no packages.

    python benchmarks/published_code.py pfllib CHECKOUT > pfllib.json

runs PEER's own code of a checkout at the commit that its replay names, on counted labels, and prints
the digest of each case's split. tests/niidpart/published holds what came out, and
tests/niidpart/test_replays_published.py compares the replays with it. Nothing of that code is here.

FedDyn's and FL-Simulator's code has its partition inside a class that loads images: it is given a
data set whose images are the numbers of the rows, and its folder of output is a temporary one.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Case = dict[str, Any]
Parts = list[list[list[int]]]  # [part][party][row]

SEEDS = (1, 42)
FILES = {
    "pfllib": ["dataset/utils/dataset_utils.py"],
    "fl-bench": [
        f"data/utils/schemes/{name}.py"
        for name in ("dirichlet", "iid", "randomly_assign_classes", "shards")
    ],
    "feddyn": ["utils_dataset.py"],
    "fl-simulator": ["dataset.py"],
}
RULES: dict[str, dict[str, list[Case]]] = {
    "pfllib": {
        "dir": [{"beta": 0.3}, {"beta": 1.0}, {"beta": 100.0}],
        "extended-dir": [{"beta": 0.5, "k": 3}, {"beta": 100.0, "k": 3}],
        "labels": [{"k": k, "even": even} for k in (1, 2) for even in (False, True)],
        "homo": [{"even": even} for even in (False, True)],
    },
    "fl-bench": {
        "dir": [{"beta": 0.3}, {"beta": 0.1, "redraw_below": 1, "test_ratio": 0.1}, {"beta": 10.0}],
        "labels": [{"k": 1}, {"k": 3}],
        "homo": [{}],
    },
    "feddyn": {
        "party-dir": [{"beta": 0.6}, {"beta": 5.0}, {"beta": 5.0, "sigma": 0.3}],
        "homo": [{}, {"sigma": 0.3}],
    },
    "fl-simulator": {
        "party-dir": [{"beta": 0.1}, {"beta": 0.6}, {"beta": 5.0}],
        "labels": [{"k": 1}, {"k": 3}],
        "homo": [{}],
    },
}


def count_labels(n: int) -> np.ndarray:
    """Return n labels of ten classes of unequal size, each of them there."""
    counted = np.arange(n - 10) ** 2 * 7 % 1009 % 10
    return np.concatenate([np.arange(10), counted])


def list_cases(peer: str) -> Iterator[Case]:
    """Yield what each split is asked for with, as `niidpart.make` takes it."""
    for rule, every in RULES[peer].items():
        for options in every:
            for seed in SEEDS:
                yield {"strategy": peer, "rule": rule, "seed": seed, "n_parties": 9, **options}


def digest(parts: Parts) -> str:
    """Return the sha256 of who holds which rows in which part."""
    held = [[sorted(map(int, rows)) for rows in part] for part in parts]
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()


def run_pfllib(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    names["alpha"] = case.get("beta", 0.1)
    partition = {"dir": "dir", "extended-dir": "exdir", "labels": "pat", "homo": None}[case["rule"]]
    x, y, _ = names["separate_data"](
        (np.arange(len(labels)), labels),
        case["n_parties"],
        10,
        case["rule"] != "homo",
        case.get("even", False),
        partition,
        class_per_client=case.get("k", 2),
    )
    train, test = names["split_data"](x, y)
    return [[party["x"] for party in part] for part in (train, test)]


def run_fl_bench(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    """As generate_data.py goes on: a shuffle for each party, its first rows for its test part."""
    n_parties, rows, classes = case["n_parties"], np.arange(len(labels)), set(range(10))
    held: dict[str, Any] = {"data_indices": [[] for _ in range(n_parties)]}
    stats = {party: {"x": 0, "y": {}} for party in range(n_parties)}
    if case["rule"] == "dir":
        least = case.get("redraw_below", 10)
        names["dirichlet"](labels, rows, classes, n_parties, case["beta"], least, held, stats)
    elif case["rule"] == "labels":
        names["randomly_assign_classes"](labels, rows, classes, n_parties, case["k"], held, stats)
    else:
        sampled = np.array(random.sample(rows.tolist(), len(rows)))
        names["iid_partition"](labels[sampled], sampled, classes, n_parties, held, stats)
    train, test = [], []
    for party in range(n_parties):
        order = np.array(held["data_indices"][party])
        np.random.shuffle(order)  # noqa: NPY002  as the published code
        n_test = int(len(order) * case.get("test_ratio", 0.25))
        train.append(order[n_test:].tolist())
        test.append(order[:n_test].tolist())
    return [train, test]


def run_data_set(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    """FedDyn's and FL-Simulator's DatasetObject. A row that a party has twice counts once."""
    rule = {"homo": "iid", "party-dir": "Dirichlet", "labels": "Pathological"}[case["rule"]]
    strength = case.get("beta", case.get("k", ""))
    kind, n_parties = names["DatasetObject"], case["n_parties"]
    images = np.zeros((len(labels), 1, 28, 28), np.float32)
    images[:, 0, 0, 0] = np.arange(len(labels))
    names |= stand_in(images, labels)
    given = {"rule_arg": strength, "unbalanced_sgm": case.get("sigma", 0)}
    if case["strategy"] == "feddyn":
        parties = kind("mnist", n_parties, rule, **given).clnt_x
    else:
        parties = kind("mnist", n_parties, case["seed"], rule, **given).client_x
    return [[sorted({int(x) for x in np.asarray(party)[:, 0, 0, 0]}) for party in parties]]


class RaggedNumpy:
    """numpy, whose `asarray` takes lists of unequal length as it did when that code was written."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, values: Any) -> Any:
        unequal = isinstance(values, list) and len({len(value) for value in values}) > 1
        return values if unequal else np.asarray(values)

    def save(self, *_: Any) -> None:
        """Save nothing: the split is read from the object."""


def stand_in(images: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Return names of a data set and its loader in the place of torchvision's MNIST."""

    def load(is_train: bool, **_: Any) -> list[Any]:
        stop = len(labels) if is_train else 1
        arrays = (images[:stop], labels[:stop])
        return [tuple(SimpleNamespace(numpy=lambda array=array: array) for array in arrays)]

    def build(*_: Any, **__: Any) -> None:
        return None

    data = SimpleNamespace(DataLoader=load)
    sets = SimpleNamespace(MNIST=lambda train, **_: train)
    return {
        "np": RaggedNumpy(),
        "os": os,
        "torch": SimpleNamespace(utils=SimpleNamespace(data=data)),
        "data": data,
        "torchvision": SimpleNamespace(datasets=sets),
        "transforms": SimpleNamespace(Compose=build, ToTensor=build, Normalize=build),
    }


def load_code(peer: str, checkout: Path) -> dict[str, Any]:
    """Return the names of the peer's files, without the imports that the partition does not need."""
    names: dict[str, Any] = {"__name__": peer}
    for file in FILES[peer]:
        source = (checkout / file).read_text()
        if peer in ("feddyn", "fl-simulator"):
            _, _, rest = source.partition("class DatasetObject")
            source = "class DatasetObject" + rest.partition("\nclass ")[0]
        else:
            missing = ("import ujson", "from torch", "from PIL")
            lines = source.partition("\nclass ")[0].splitlines()
            source = "\n".join(line for line in lines if not line.startswith(missing))
        exec(compile(source, file, "exec"), names)  # a checkout that the caller trusts
    return names


RUNNERS: dict[str, Callable[[dict[str, Any], np.ndarray, Case], Parts]] = {
    "pfllib": run_pfllib,
    "fl-bench": run_fl_bench,
    "feddyn": run_data_set,
    "fl-simulator": run_data_set,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=sorted(RUNNERS))
    parser.add_argument("checkout", type=Path)
    asked = parser.parse_args()
    checkout = asked.checkout.absolute()
    labels, found = count_labels(600), []
    for case in list_cases(asked.peer):
        random.seed(case["seed"])
        np.random.seed(case["seed"])  # noqa: NPY002  what is replayed
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            os.chdir(folder)
            (Path(folder) / "Data").mkdir()
            parts = RUNNERS[asked.peer](load_code(asked.peer, checkout), labels, case)
            os.chdir(checkout)
        found.append({"asked": case, "digest": digest(parts)})
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
