"""A FedAvg round of this project, with each engine, beside a plain PyTorch loop and three simulators from PyPI, on the same split, in one run.

    python benchmarks/training.py [--data-root DIR] [--sides looped,processes,plain@1x1,...] [--rounds 4] [--repeats 2] [--envs DIR]

The round: 60,000 images of 1 x 28 x 28 bytes (random, or MNIST with --data-root), 10 classes, Dir(0.5) among 10 parties, the papers' CNN, batch 64,
one local epoch in a new order, SGD with lr 0.01 and momentum 0.9 that starts anew, the mean weighted by examples, then one evaluation on 10,000
images. A side is NAME or NAME@PROCESSESxTHREADS: looped, processes, native, stacked (ours; stacked is made for a GPU: two rounds, if asked for),
plain, pfl, flwr, fedlab. The first call installs the peers under --envs, each with the same CPU build of torch (about 3 GB). Every side is a fresh
process that reads the same .npz; the sides take turns, --repeats times, because rounds of different processes cannot. The first round, with what a
library sets up before it, stands apart; the others are pooled. Memory and CPU seconds are those of all processes of a side. The peak beside GFLOP/s
is the best that torch's own float32 matmul or convolution reaches in this run. Linux alone. Without the peers: --sides looped,processes,native,plain.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from training_sides import SIDES, Side, measure
from training_table import peak_gflops, report, seconds

import niidpart


def prepare(folder: Path, data_root: Path | None) -> niidpart.FederatedSplit:
    """data.npz (the images, and indptr and indices of the split) and split.h5 in the folder; the split."""
    if data_root is None:
        rng = np.random.default_rng(0)
        arrays = {
            name: rng.integers(0, 256, (n, 28, 28), np.uint8)
            for name, n in (("x", 60_000), ("x_test", 10_000))
        }
        arrays |= {name: rng.integers(0, 10, n) for name, n in (("y", 60_000), ("y_test", 10_000))}
    else:
        data = niidpart.load("mnist", data_root)
        arrays = {
            "x": data.features(slice(None)),
            "y": data.labels,
            "x_test": data.test_features(slice(None)),
            "y_test": data.test_labels,
        }
    np.savez(folder / "data.npz", **arrays)
    split = niidpart.make(niidpart.load("npz", folder / "data.npz"), "dir", beta=0.5, n_parties=10)
    np.savez(folder / "data.npz", **arrays, indptr=split.train.indptr, indices=split.train.indices)
    niidpart.write(split, folder / "split.h5")
    return split


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data-root", type=Path, metavar="DIR", help="Where MNIST lies; random images without it."
    )
    parser.add_argument(
        "--sides",
        type=lambda text: list(map(Side.of, text.split(","))),
        default=SIDES,
        help=f"Default: {SIDES}.",
    )
    parser.add_argument(
        "--rounds", type=int, default=4, help="Rounds of each process, the first apart: at least 2."
    )
    parser.add_argument("--repeats", type=int, default=2, help="Turns of the sides.")
    parser.add_argument(
        "--envs",
        type=Path,
        default=Path(".venv-bench"),
        metavar="DIR",
        help="Where the peers' environments are kept.",
    )
    parser.add_argument(
        "--limit", type=float, default=600.0, metavar="SECONDS", help="When a side is stopped."
    )
    arguments = parser.parse_args()
    if arguments.rounds < 2 or arguments.repeats < 1:
        parser.error("--rounds must be at least 2 (the first stands apart), --repeats at least 1")
    found: dict[Side, list[dict[str, Any]]] = {side: [] for side in arguments.sides}
    peaks = dict.fromkeys({side.cores for side in found}, 0.0)
    with tempfile.TemporaryDirectory() as scratch:
        split = prepare(Path(scratch), arguments.data_root)
        for _ in range(arguments.repeats):
            peaks = {n: max(peak, peak_gflops(n)) for n, peak in peaks.items()}
            for side, measured in found.items():
                if not any("error" in m for m in measured):
                    measured.append(measure(side, Path(scratch), arguments))
                    print(
                        f"{side}: {measured[-1].get('error') or f'{seconds(measured[-1:]):.2f} s a round'}",
                        file=sys.stderr,
                        flush=True,
                    )
        report(found, peaks, arguments, split)


if __name__ == "__main__":
    main()
