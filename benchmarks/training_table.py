"""What training.py prints: the peak of this machine, a row for each side, and all of it as JSON."""

import argparse
import json
import os
import statistics
import time
from typing import Any

import torch
from training_sides import OURS, Side

import niidpart
from fltrain.environment import describe

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
