"""CPU seconds of a replay beside the peer's own code.

    python benchmarks/replays.py [--peers DIR] [--checkouts DIR] [--only PEER]

--peers: the environments of tests/niidpart/test_replays_peers.py (flwr-datasets, fedlab, pfl,
fluke). --checkouts: DIR/PEER of the others, as benchmarks/published_code.py takes them.

60,000 labels of ten classes among ten parties, both sides in turns in one process, seeded in the
time measured; the best of fifteen (of three where a turn of all sides takes more than two seconds),
after a look whether the rows are the same: of shards that the peer sorts as the processor likes,
whether the counts are. Like for like is the rule alone, from labels to who holds what. What either
side hands out may be pieces of an order, or data sets: "written down" it is one owner a row, or
pairs of party and row. `make` is the whole `niidpart.make`, with recipe, digests, counts and parts.
Peers get arrays of labels; LEAF's scripts read and write files, in the time.
"""

import argparse
import contextlib
import io
import random
import tempfile
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from published_runners import Case, count_groups
from replays_peers import CASES, LABELS, PARTIES, VALUES, Call, load_peer

import niidpart
from niidpart.making.deals import carry_out
from niidpart.strategies import STRATEGIES, Deal, Rows

REPEATS = 15
LONG, FEW = 2.0, 3  # where a turn takes more seconds, so many turns
# the peer's sort leaves the rows of a class as the processor likes
UNORDERED = {("fedlab", "shards"), ("fluke", "shards"), ("fl-bench", "shards")}
HEAD = (
    "replay | peer, CPU s | rule, CPU s | rule / peer | both written down: peer, CPU s | "
    "rule, CPU s | rule / peer | make, CPU s | make / peer"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--checkouts", type=Path)
    parser.add_argument("--only", choices=CASES)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| {HEAD} |\n|{' --- |' * 9}")
    for peer in [asked.only] if asked.only else CASES:
        for case, run in load_peer(peer, asked.peers, asked.checkouts):
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                print(f"| `{peer}` {name(case)} | {compare(peer, case, run)} |", flush=True)


def name(case: Case) -> str:
    """Return the rule of a case and its options."""
    left_out = ("strategy", "rule", "n_parties")
    options = [f"{key} {value}" for key, value in case.items() if key not in left_out]
    return ", ".join([case["rule"], *options])


def compare(peer: str, case: Case, run: Call) -> str:
    """Return the cells of a row. run: by the peer's code, [part][party] rows."""
    asked = {"strategy": peer, "n_parties": PARTIES, "seed": 0} | case
    for_rule, for_make = hand_over(asked["strategy"])
    options = {key: value for key, value in asked.items() if key != "strategy"}
    rule = partial(STRATEGIES.find(asked["strategy"]), LABELS, rng=None, **for_rule, **options)
    make = partial(niidpart.make, LABELS, **for_make, **asked)
    require_same(make(), seed_and_run(run), has_order=(peer, case["rule"]) not in UNORDERED)
    write = write_pairs if isinstance(rule(), Rows) else write_owners

    def write_ours() -> Any:
        dealt = rule()
        if isinstance(dealt, Deal):  # it has its own order
            return carry_out(dealt, LABELS, PARTIES, orders=None)
        return dealt

    sides = measure(run, rule, lambda: write(run()), write_ours, make)
    theirs, ours, their_table, our_table, whole = sides
    bare = f"{theirs:.5f} | {ours:.5f} | {ours / theirs:.2f}"
    written = f"{their_table:.5f} | {our_table:.5f} | {our_table / their_table:.2f}"
    return f"{bare} | {written} | {whole:.5f} | {whole / theirs:.2f}"


def hand_over(strategy: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a strategy needs beside labels: as the rule takes it, and as `make` does."""
    if strategy == "leaf":
        groups = count_groups(len(LABELS))
        return {"groups": groups}, {"groups": groups}
    if strategy == "flower-continuous":
        column = VALUES[:, np.newaxis]
        return {"features": column.__getitem__}, {"embeddings": column}
    return {}, {}


def require_same(
    split: niidpart.FederatedSplit, parts: Sequence[Sequence[Any]], *, has_order: bool
) -> None:
    """Raise where a party's rows are not the peer's; without its order, where the counts are."""
    for part, held in zip(("train", "test"), parts, strict=False):
        for party, rows in enumerate(held):
            ours, theirs = split.parts[part].party(party), np.unique(list_rows(rows))
            if not has_order:
                ours, theirs = np.sort(LABELS[ours]), np.sort(LABELS[theirs])
            np.testing.assert_array_equal(theirs, ours)


def list_rows(held: Any) -> np.ndarray:
    """Return the rows that a party holds, which may come as a data set."""
    return np.asarray(held["row"] if hasattr(held, "column_names") else held, np.int64)


def write_owners(parts: Sequence[Sequence[Any]]) -> np.ndarray:
    owner = np.full(len(LABELS), -1, np.int64)
    for party, held in enumerate(parts[0]):
        owner[list_rows(held)] = party
    return owner


def write_pairs(parts: Sequence[Sequence[Any]]) -> list[tuple[np.ndarray, np.ndarray]]:
    pairs = []
    for part in parts:
        rows = [list_rows(held) for held in part]
        pairs.append((np.repeat(np.arange(len(rows)), list(map(len, rows))), np.concatenate(rows)))
    return pairs


def measure(*sides: Call) -> list[float]:
    """Return the least CPU seconds of each side, all in turns."""
    times: list[list[float]] = [[] for _ in sides]
    for turn in range(1, REPEATS + 1):
        for run, of_side in zip(sides, times, strict=True):
            start = time.process_time()
            seed_and_run(run)
            of_side.append(time.process_time() - start)
        if turn == FEW and sum(map(min, times)) > LONG:
            break
    return [min(of_side) for of_side in times]


def seed_and_run(run: Call) -> Any:
    np.random.seed(0)  # noqa: NPY002  of the peer's code
    random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        return run()


if __name__ == "__main__":
    main()
