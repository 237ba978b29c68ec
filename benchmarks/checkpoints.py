"""What the run folder costs: digest of the state, line of the metrics, checkpoints, memory; beside the same run in memory.

    python benchmarks/checkpoints.py [--case digits,scaffold] [--parties 2000] [--rounds N] [--repeats 3] [--folder DIR]

digits: `make demo`'s run: the digits, Dir(0.5) among 10 parties, FedAvg with all defaults, 50 rounds. scaffold: SCAFFOLD with the papers' CNN
(44,426 parameters), whose --parties keep 178 kB each; a cohort of 100 trains on 12 random images each, 6 rounds. Each run is a process of its own:
in memory, into a folder with a checkpoint as often as a tenth of the time allows (the default), and with one after each round (every 1), in turns,
--repeats times. Seconds are wall time: of all rounds, and of each part the median and the most; "waited" is what a checkpoint holds training up,
"written" what it takes beside. "resumed" is a process that goes on with such a folder for one more round. Memory is the process's peak above that of
the run in memory, as times the state: 1 + that / state.
The disk is that of --folder, the system's temporary folder unless it is given.
"""

import argparse
import contextlib
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import fltrain
import niidpart
from fltrain import tree
from fltrain.checkpoints.series import CheckpointSeries
from fltrain.checkpoints.state_digest import StateDigest
from fltrain.runs.metrics_log import MetricsLog
from fltrain.runs.writer import RunWriter

Times = dict[str, list[float]]
WATCHED = {
    "digest": (StateDigest, "update"),
    "metrics": (MetricsLog, "append"),
    "waited": (RunWriter, "save"),
    "held": (RunWriter, "hold"),
    "written": (CheckpointSeries, "write"),
}
MODES: dict[str, dict[str, Any]] = {
    "in memory": {},
    "a tenth of the time": {},
    "every 1": {"checkpoint_every": 1},
    "resumed": {},
}


class Measured(NamedTuple):
    """A run: seconds of all rounds, of each part, bytes of the state, the peak of memory."""

    seconds: float
    times: Times
    state: int
    peak: int


def digits(_: int) -> tuple[Any, Any, dict[str, Any]]:
    data = niidpart.load("digits")
    split = niidpart.make(data, "dir", beta=0.5, n_parties=10, seed=0)
    return split, data, {"rounds": 50}


def scaffold(parties: int) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    labels = np.arange(12 * parties) % 10
    images = rng.integers(0, 256, (len(labels), 28, 28), np.uint8)
    data = niidpart.from_arrays(images, labels, images[:100], labels[:100])
    split = niidpart.make(data, "homo", n_parties=parties, seed=0)
    asked = {"algorithm": "scaffold", "model": "cnn", "cohort_size": 100, "rounds": 6}
    return split, data, asked | {"local_epochs": 1, "eval_every": 100, "engine": "looped"}


CASES: dict[str, Callable[[int], tuple[Any, Any, dict[str, Any]]]] = {
    "digits": digits,
    "scaffold": scaffold,
}


def timed(function: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        result = function(*args, **kwargs)
        times.append(time.perf_counter() - began)
        return result

    return call


@contextlib.contextmanager
def watch(times: Times) -> Iterator[None]:
    """Time the parts of what is written down in a round."""
    with contextlib.ExitStack() as patches:
        for name, (owner, method) in WATCHED.items():
            call = timed(getattr(owner, method), times.setdefault(name, []))
            patches.enter_context(mock.patch.object(owner, method, call))
        yield


def run(case: str, parties: int, rounds: int | None, mode: str, folder: Path | None) -> Measured:
    """Train once, and return what it took. For a process of its own: the peak is the process's."""
    split, data, asked = CASES[case](parties)
    if rounds:
        asked["rounds"] = rounds
    times: Times = {}
    moments = []

    def progress(event: fltrain.Progress) -> None:
        if isinstance(event, fltrain.Announcement | fltrain.RoundDone):
            moments.append(time.perf_counter())

    with tempfile.TemporaryDirectory(dir=folder) as place, watch(times):
        out = None if mode == "in memory" else Path(place) / "run"
        if mode == "resumed":
            call_apart(leave_behind, case, parties, asked["rounds"], out)
            done = fltrain.resume(out, data, rounds=asked["rounds"] + 1, progress=progress)
        else:
            done = fltrain.run(split, data, out=out, progress=progress, **asked, **MODES[mode])
    state = sum(leaf.nbytes for leaf in tree.leaves(done.state.parts))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measured(moments[-1] - moments[0], times, state, peak)


def leave_behind(case: str, parties: int, rounds: int, out: Path) -> None:
    """Train into a folder."""
    split, data, asked = CASES[case](parties)
    fltrain.run(split, data, out=out, **asked | {"rounds": rounds})


def call_apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a fresh process."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        return process.submit(function, *arguments).result()


def measure(case: str, args: argparse.Namespace) -> None:
    found: dict[str, list[Measured]] = {mode: [] for mode in MODES}
    for _ in range(args.repeats):
        for mode, measured in found.items():
            once = call_apart(run, case, args.parties, args.rounds, mode, args.folder)
            measured.append(once)
    print(f"\n{case}, a state of {found['in memory'][0].state / 1e6:.4g} MB")
    in_memory = statistics.median(one.seconds for one in found["in memory"])
    least = min(one.peak for one in found["in memory"])
    for mode, measured in found.items():
        seconds = statistics.median(one.seconds for one in measured)
        print(f"  {mode}: {seconds:.3f} s of rounds, {seconds / in_memory:.2f} times in memory")
        if mode == "in memory":
            continue
        above = statistics.median(one.peak - least for one in measured) / measured[0].state
        print(f"    peak of memory {1 + above:10.2f} times the state")
        for part in WATCHED:
            each = [seconds for one in measured for seconds in one.times[part]]
            if each:
                median, most = statistics.median(each), max(each)
                n = len(each) / len(measured)
                print(f"    {part:10} {n:6.1f} times, {median:8.4f} s, at most {most:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default=",".join(CASES))
    parser.add_argument("--parties", type=int, default=2000)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    for name in args.case.split(","):
        measure(name, args)


if __name__ == "__main__":
    main()
