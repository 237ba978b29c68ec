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
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from process_tree import family, memory

import niidpart
from fltrain.environment import describe

HERE = Path(__file__).parent
# This tree's own packages, whatever is installed where a side's python is.
_OWN_CODE = os.pathsep.join(map(str, [HERE, HERE.parent, HERE.parent / "cli"]))
TORCH = ["torch==2.13.0", "torchvision==0.28.0"]
PEERS = {
    "pfl": ["pfl==0.6.0"],
    "flwr": ["flwr[simulation]==1.41.0"],
    "fedlab": ["torchvision", "fedlab==1.3.0"],
}
OURS = ("looped", "processes", "native", "stacked")
SHAPES = {
    "looped": (1, 2),
    "processes": (2, 1),
    "native": (2, 1),
    "stacked": (1, 2),
    "plain": (1, 2),
    "pfl": (2, 1),
    "flwr": (2, 1),
    "fedlab": (1, 2),
}
SIDES = "looped,processes,native,plain@1x1,plain@1x2,pfl@1x1,pfl@2x1,flwr@2x1,fedlab@1x2"
FLOP = (
    2 * 758_520
)  # of training on one image: forward, weights' and data's gradients of conv1, conv2, fc1, fc2, out
HEAD = [
    "side",
    "processes x threads",
    "seconds a round, median (range)",
    "of it training",
    "evaluation",
    "CPU seconds",
    "cores used by others meanwhile",
    "first round",
    "peak MB",
    "GFLOP/s in training (share of peak)",
    "times the fastest of ours",
    "test accuracy",
    "loss",
]


class Side(NamedTuple):
    name: str
    processes: int
    threads: int

    @classmethod
    def of(cls, text: str) -> "Side":
        name, _, shape = text.partition("@")
        if name not in SHAPES:
            raise argparse.ArgumentTypeError(
                f"there is no side {name!r}; there are {', '.join(SHAPES)}"
            )
        try:
            processes, threads = map(int, shape.split("x")) if shape else SHAPES[name]
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no NAME@PROCESSESxTHREADS, such as plain@1x2"
            ) from None
        return cls(name, processes, threads)

    @property
    def cores(self) -> int:
        return self.processes * self.threads

    def __str__(self) -> str:
        return f"{self.name}@{self.processes}x{self.threads}"


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


def interpreter(name: str, envs: Path) -> Path:
    """The python that has the library of a side; its environment is made if it is not there. CalledProcessError if it cannot be."""
    if name not in PEERS:
        return Path(sys.executable)
    home = (envs / name).absolute()
    if not (home / "installed").exists():
        print(f"installing {' '.join(PEERS[name])} in {home}", file=sys.stderr, flush=True)
        venv.create(home, with_pip=True, clear=True)
        (home / "constraints.txt").write_text("\n".join(TORCH))
        for packages in (
            [TORCH[0]],
            PEERS[name],
        ):  # torch first: a peer's own wish for one must find it there
            command = [
                home / "bin/python",
                "-m",
                "pip",
                "install",
                "--quiet",
                "-c",
                home / "constraints.txt",
                *packages,
            ]
            subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
        (home / "installed").touch()
    return home / "bin/python"


def measure(side: Side, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """What the child wrote, with the peak of memory; {"error": reason} if it could not be installed, failed, or was stopped at the limit."""
    try:
        python = interpreter(side.name, arguments.envs)
    except subprocess.CalledProcessError as error:
        return {"error": f"not installed: {_last(error.stderr)}"}
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(side.threads)
    )
    quiet = {
        "FLWR_TELEMETRY_ENABLED": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "FLWR_HOME": str(folder / "flwr"),
    }
    peer, engine = ("ours", side.name) if side.name in OURS else (side.name, "-")
    out, said = folder / "out.json", folder / "said.txt"
    out.unlink(missing_ok=True)
    rounds = 2 if side.name == "stacked" else arguments.rounds
    command = [
        python,
        HERE / "training_child.py",
        peer,
        engine,
        folder,
        out,
        rounds,
        side.processes,
        side.threads,
        _port(),
    ]
    with said.open("w") as log:
        child = subprocess.Popen(
            list(map(str, command)),
            env=os.environ | threads | quiet | {"PYTHONPATH": _OWN_CODE},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        peak, late = _watched(child, arguments.limit)
    if late:
        return {"error": f"stopped after {arguments.limit:.0f} s"}
    if child.returncode or not out.exists():
        return {"error": _last(said.read_text(errors="replace"))}
    return json.loads(out.read_text()) | {"megabytes": peak / 1e6}


def _watched(child: subprocess.Popen, limit: float) -> tuple[int, bool]:
    """(the most memory that the child's family was seen with, whether it had to be stopped)."""
    peak, began = 0, time.monotonic()
    while child.poll() is None:
        peak = max(peak, memory(child.pid))
        if time.monotonic() - began > limit:
            for pid in family(child.pid):
                with contextlib.suppress(ProcessLookupError):  # ended meanwhile
                    os.kill(pid, signal.SIGKILL)
            child.wait()
            return peak, True
        time.sleep(0.5)
    return peak, False


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "no reason given")[:160].replace("|", "/")


def _port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def peak_gflops(threads: int) -> float:
    """The best float32 GFLOP/s of torch here with so many threads: matmul 2048^3, or a 3 x 3 convolution of 128 channels."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    a, b, x, w = (
        torch.randn(2048, 2048),
        torch.randn(2048, 2048),
        torch.randn(16, 128, 32, 32),
        torch.randn(128, 128, 3, 3),
    )
    best = 0.0
    for work, flop in (
        (lambda: a @ b, 2 * 2048**3),
        (lambda: torch.nn.functional.conv2d(x, w, padding=1), 2 * 9 * 128**2 * 16 * 32**2),
    ):
        for _ in range(10):
            began = time.perf_counter()
            work()
            best = max(best, flop / (time.perf_counter() - began) / 1e9)
    torch.set_num_threads(before)
    return best


def row(side: Side, measured: list[dict[str, Any]], peak: float, ours: float | None) -> list[str]:
    if errors := [m["error"] for m in measured if "error" in m]:
        return [side.name, f"{side.processes} x {side.threads}", errors[0], *[""] * (len(HEAD) - 3)]
    rounds = [r for m in measured for r in m["rounds"][1:]]
    train, evaluation, cpu, others = (
        statistics.median(r[what] for r in rounds)
        for what in ("train", "evaluate", "cpu", "others")
    )
    whole, last = [r["train"] + r["evaluate"] for r in rounds], measured[0]["rounds"][-1]
    first = statistics.median(
        m["rounds"][0]["train"] + m["rounds"][0]["evaluate"] for m in measured
    )
    gflops = 60_000 * FLOP / train / 1e9
    return [
        f"{side.name}, {measured[0]['package']} {measured[0]['version']}",
        f"{side.processes} x {side.threads}",
        f"{statistics.median(whole):.2f} ({min(whole):.2f} to {max(whole):.2f})",
        f"{train:.2f}",
        f"{evaluation:.2f}",
        f"{cpu:.2f}",
        f"{others:.2f}",
        f"{first:.2f}",
        f"{statistics.median(m['megabytes'] for m in measured):.0f}",
        f"{gflops:.1f} ({100 * gflops / peak:.0f} %)",
        f"{statistics.median(whole) / ours:.2f}" if ours else "",
        f"{100 * last['accuracy']:.2f} %",
        f"{last['loss']:.4f}",
    ]


def seconds(measured: list[dict[str, Any]]) -> float:
    """The median of a round, infinite for a side that failed."""
    if any("error" in m for m in measured):
        return float("inf")
    return statistics.median(r["train"] + r["evaluate"] for m in measured for r in m["rounds"][1:])


def report(
    found: dict[Side, list[dict[str, Any]]],
    peaks: dict[int, float],
    arguments: argparse.Namespace,
    split: niidpart.FederatedSplit,
) -> None:
    here = describe(torch.device("cpu")) | {"cores": os.cpu_count()}
    fastest = min(
        (seconds(m) for side, m in found.items() if side.name in OURS), default=float("inf")
    )
    sizes = split.train.sizes
    data = "MNIST" if arguments.data_root else "random images"
    print(
        f"{here['cpu']}, {here['cores']} cores; Python {here['python']}, torch {here['torch']}, numpy {here['numpy']}"
    )
    print(
        f"{data}, split {split.digest[:16]}, parties of {sizes.min():,} to {sizes.max():,}; {arguments.rounds} rounds, {arguments.repeats} times"
    )
    print(
        "peak: "
        + ", ".join(f"{peak:.0f} GFLOP/s with {n} threads" for n, peak in sorted(peaks.items()))
        + "\n"
    )
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}")
    for side, measured in found.items():
        print(
            f"| {' | '.join(row(side, measured, peaks[side.cores], fastest if fastest < float('inf') else None))} |"
        )
    sides = {str(side): measured for side, measured in found.items()}
    print(
        "\n"
        + json.dumps(
            {
                "machine": here,
                "data": data,
                "split": split.digest,
                "peak_gflops": peaks,
                "sides": sides,
            }
        )
    )


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
