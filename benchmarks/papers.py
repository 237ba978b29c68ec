"""Every study of a paper at the small scale, from start to table, killed once.

    python benchmarks/papers.py [--workers 2] [--folder papers] [NAME ...]

The workers and the command are killed by SIGKILL when a third of the cells is done, or where there
are few when the first is begun; then the study goes on, is verified, and its table is printed. A
line says how long both took together, and the CPU seconds of all processes. `make papers` runs it.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from process_tree import family

_FLTRAIN = (sys.executable, "-m", "niidpart_cli.train")
_LOOK = 0.05  # seconds between two looks at a study that is to be killed
_FEW = 3  # cells, below which the kill does not wait for one to be done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="Studies.  [all]")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("papers"))
    asked = parser.parse_args()
    cells = count_cells()
    for name in asked.names or cells:
        folder = asked.folder / name.replace("/", "-")
        shutil.rmtree(folder, ignore_errors=True)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = run_killed(name, folder, cells[name], asked.workers)
        table = finish(folder, cells[name], asked.workers)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        wall = time.monotonic() - began
        print(f"{name}: {cells[name]} cells, killed after {done}, {wall:.0f} s, {cpu:.0f} CPU s")
        print(table, flush=True)


def count_cells() -> dict[str, int]:
    """Return how many cells each study has at the small scale."""
    listed = subprocess.run(
        [*_FLTRAIN, "study", "--paper", "--json"], capture_output=True, text=True, check=True
    )
    return {one["name"]: one["small"] for one in json.loads(listed.stdout)}


def run_killed(name: str, folder: Path, cells: int, workers: int) -> int:
    """Begin a study, and kill all that works on it. Return how many cells were done."""
    process = subprocess.Popen(
        [*_FLTRAIN, "study", "--paper", name, "--out", folder, "--workers", str(workers)],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    while process.poll() is None and not is_time(folder, cells):
        time.sleep(_LOOK)
    # Those that were started last first: nobody is to hear of another's end.
    for one in sorted(family(process.pid), reverse=True):
        with contextlib.suppress(ProcessLookupError):  # it has ended in between
            os.kill(one, signal.SIGKILL)
    process.wait()
    return len(list(folder.glob("cells/*")))


def is_time(folder: Path, cells: int) -> bool:
    """Return whether enough of a study is done to kill it."""
    if cells <= _FEW:
        return any(folder.glob("work/*/run/config.json"))
    return len(list(folder.glob("cells/*"))) >= cells / 3


def finish(folder: Path, cells: int, workers: int) -> str:
    """Let a study go on to its end, verify it, and return its table."""
    go_on = [*_FLTRAIN, "study", folder, "--workers", str(workers), "--json"]
    ended = subprocess.run(go_on, capture_output=True, text=True)
    if ended.returncode:
        sys.exit(f"{folder}: {ended.stderr}")
    if json.loads(ended.stdout)["done"] != cells:
        sys.exit(f"{folder}: not all cells are done: {ended.stdout}")
    verified = subprocess.run(
        [*_FLTRAIN, "verify", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if verified.returncode:
        sys.exit(f"{folder}: {verified.stdout}")
    table = [*_FLTRAIN, "table", folder]
    return subprocess.run(table, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
