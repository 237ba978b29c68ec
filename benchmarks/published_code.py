"""Digests of the splits that published code gives, for peers that are no packages.

    python benchmarks/published_code.py pfllib CHECKOUT > pfllib.json

runs PEER's own code of a checkout at the commit that its replay names, on counted labels, and prints
the digest of each case's split. tests/niidpart/published holds what came out, and
tests/niidpart/test_replays_published.py compares the replays with it. Nothing of that code is here.
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
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from published_runners import RUNNERS, Case, Parts, count_groups, load_code

SEEDS = (1, 42)
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
    "map004": {
        "dir-balanced": [{"beta": 1000.0}, {"beta": 0.5}, {"beta": 0.5, "redraw_below": 10}],
    },
    "fedcd": {"hierarchical": [{"n_train": 30}, {"n_train": 24, "n_val": 10, "n_test": 5}]},
    "leaf": {
        "group": [
            {"sampled": 0.3},
            {"sampled": 1.0, "min_group": 12},
            {"sampled": 0.5, "train_fraction": 0.9, "split_seed": 7},
        ],
        "homo": [{"sampled": 0.31}, {"sampled": 1.0, "train_fraction": 0.6, "split_seed": 7}],
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


def count_beside(case: Case, n: int) -> dict[str, np.ndarray]:
    """Return what the replay of a case needs beside n labels."""
    return {"groups": count_groups(n)} if case["strategy"] == "leaf" else {}


def list_cases(peer: str) -> Iterator[Case]:
    """Yield what each split is asked for with, as `niidpart.make` takes it."""
    for rule, every in RULES[peer].items():
        for options in every:
            for seed in SEEDS:
                yield {"strategy": peer, "rule": rule, "seed": seed, "n_parties": 9, **options}


def digest(parts: Parts) -> str:
    """Return the sha256 of who holds which rows in which part. A row twice counts once."""
    held = [[sorted(set(map(int, rows))) for rows in part] for part in parts]
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=sorted(RULES))
    parser.add_argument("checkout", type=Path)
    asked = parser.parse_args()
    checkout = asked.checkout.absolute()
    labels, found = count_labels(600), []
    for case in list_cases(asked.peer):
        random.seed(case["seed"])
        np.random.seed(case["seed"])  # noqa: NPY002  what is replayed
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            os.chdir(folder)
            parts = RUNNERS[asked.peer](load_code(asked.peer, checkout), labels, case)
            os.chdir(checkout)
        # LEAF says by itself how many users are left
        asked_for = case | {"n_parties": len(parts[0])}
        found.append({"asked": asked_for, "digest": digest(parts)})
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
