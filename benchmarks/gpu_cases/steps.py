"""What steps take: the host's part, kernels, models, convolutions, the start."""

import functools
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import torch

import niidpart
from fltrain.engine import EXECUTORS
from fltrain.engine.stacked.executor import Stacked

from .bench import ENGINES, Bench, Late, deal, deal_papers, prepare_run, print_head

START = """
import sys, time
import torch
began = time.process_time()
import fltrain
class Begun(Exception): pass
def progress(p):
    if isinstance(p, fltrain.JobDone):
        raise Begun
try:
    fltrain.run(sys.argv[1], device=sys.argv[2], engine=sys.argv[3], rounds=1, local_steps=1, progress=progress)
except Begun:
    print(time.process_time() - began)
"""


def measure_host(bench: Bench) -> bool:
    """What the host does for a step: one of ten parties with a model and batches so small that kernels take next to nothing."""
    parties, steps = bench.size(10, 4), bench.size(200, 10)
    split, data = deal(bench.size(2_000, 200), (8,), parties, "homo")
    width = print_head("host", "ms a step of all parties")

    def measure(engine: str) -> list[Any]:
        fixed = {"model": "linear", "local_steps": steps, "batch_size": 2, "eval_every": 1000}
        got = bench.time_rounds(prepare_run(split, data, engine=engine, **fixed))
        return [1000 * got.train / steps]

    for engine in ENGINES:
        bench.print_row(engine, lambda engine=engine: measure(engine), width)
    return True


def list_kernels(bench: Bench) -> bool:
    """Where one round's time goes."""
    split, data = deal_papers(bench)
    for engine in ENGINES[1:]:
        width = print_head(f"operation or kernel, {engine}", "calls", f"{bench.device} ms", "%")
        try:
            _print_kernels(bench, prepare_run(split, data, engine=engine))
        except (Late, ValueError, RuntimeError) as error:
            reason = f"none: {type(error).__name__} {error}"
            bench.print_row(reason, lambda width=width: [""] * width, width)
    return True


def _print_kernels(bench: Bench, run: Any) -> None:
    on = torch.profiler.ProfilerActivity
    is_cuda = bench.device == "cuda"
    with torch.profiler.profile(activities=[on.CPU, on.CUDA] if is_cuda else [on.CPU]) as profile:
        bench.time_rounds(run, rounds=2)
    what = "self_device_time_total" if is_cuda else "self_cpu_time_total"
    events = sorted(profile.key_averages(), key=lambda event: -getattr(event, what))
    total = sum(getattr(event, what) for event in events) or 1
    for event in events[:15]:
        spent = getattr(event, what)
        name = event.key[:70].replace("|", "/")
        share = 100 * spent / total
        print(f"| {name} | {event.count} | {spent / 1e3:.2f} | {share:.1f} |")


def time_models(bench: Bench) -> bool:
    """Milliseconds of a step of one job, by model and engine."""
    width = print_head(
        "model, steps of each of 4 parties",
        *(f"{engine}, ms a step" for engine in ENGINES),
        "times as fast, the last one",
        "peak MB",
    )
    sizes: Sequence[tuple[str, tuple[int, ...], int, int]] = [
        ("cnn", (28, 28), 60_000, 100),
        ("cnn", (32, 32, 3), 50_000, 100),
        ("mlp", (54,), 581_012, 200),
        ("resnet18-gn", (32, 32, 3), 5_000, 10),
        ("resnet50", (32, 32, 3), 5_000, 6),
    ]
    if bench.small:
        sizes = [("cnn", (28, 28), 120, 1), ("mlp", (54,), 400, 2)]

    def measure(name: str, shape: tuple[int, ...], n: int, steps: int) -> list[Any]:
        split, data = deal(n, shape, 4, "homo")
        often = {"model": name, "local_steps": steps, "eval_every": 1000}
        took = [
            bench.time_rounds(prepare_run(split, data, engine=engine, **often), rounds=3)
            for engine in ENGINES
        ]
        each = [1000 * one.train / (4 * steps) for one in took]
        return [*each, each[0] / each[-1], took[-1].megabytes]

    for row in sizes:
        shape = " x ".join(map(str, row[1]))
        bench.print_row(f"{row[0]}, {shape}, {row[3]}", lambda row=row: measure(*row), width)
    return True


def compare_convolutions(bench: Bench) -> bool:
    """The two ways of a stacked convolution."""
    split, data = deal_papers(bench)
    width = print_head("convolution, stacked", "training, s", "peak MB")

    def measure(kind: str) -> list[Any]:
        usual = EXECUTORS["stacked"]
        EXECUTORS["stacked"] = functools.partial(Stacked, convolutions=kind)
        try:
            got = bench.time_rounds(prepare_run(split, data, engine="stacked"), rounds=3)
        finally:
            EXECUTORS["stacked"] = usual
        return [got.train, got.megabytes]

    for kind in ("grouped", "product"):
        bench.print_row(kind, lambda kind=kind: measure(kind), width)
    return True


def time_start(bench: Bench) -> bool:
    """From a fresh process to its first job, torch's import aside."""
    width = print_head("start to the first job", "CPU seconds beyond import torch")

    def measure(engine: str) -> list[Any]:
        with tempfile.TemporaryDirectory() as scratch:
            path = f"{scratch}/split.h5"
            niidpart.write(niidpart.make(niidpart.load("digits"), "dir", beta=0.5), path)
            command = [sys.executable, "-c", START, path, bench.device, engine]
            left = max(bench.until - time.perf_counter(), 1)
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=left)
            except subprocess.TimeoutExpired:
                raise Late from None
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return [float(done.stdout)]

    for engine in ENGINES[-1:] if bench.small else ENGINES:
        bench.print_row(engine, lambda engine=engine: measure(engine), width)
    return True
