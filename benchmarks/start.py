"""What a command takes besides training: its help, from the import of torch to the first job, and what follows the last round.

    python benchmarks/start.py [--beside CLONE] [--repeats 5]

The run: FedAvg on the digits, Dir(0.5) among 10 parties, three rounds, engine looped on one thread, by `fltrain run` into a folder. Each measurement is a
process of its own. CPU seconds, median and range: of `fltrain run --help` as a whole; of `import torch` alone; from there to the first job;
from the end of the last round to the end of the process; and of the picture, which `--draw` asks for. Where another clone of the project is given, of another commit, both take turns.
Python's compiled files are kept, as an installed package has them.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
MAKE = "from niidpart_cli.split import main; main(['make', '--strategy', 'dir', '-o', 'split.h5'])"
RUN = """
import atexit, json, shutil, sys, time
marks = {"python": time.process_time()}
import torch
marks["torch"] = time.process_time()
import fltrain
from niidpart_cli.train import main

def write():
    marks["end"] = time.process_time()
    json.dump(marks, open("marks.json", "w"))

import fltrain.engine.looped as looped
train_job = looped.train_job

def watch(*args):
    marks.setdefault("job", time.process_time())
    done = train_job(*args)
    marks["trained"] = time.process_time()
    return done

looped.train_job = watch
atexit.register(write)
how = "--rounds 3 --engine looped --threads 1 --device cpu --out run"
main(["run", "split.h5", *how.split(), *sys.argv[1:]])
"""
HELP = "from niidpart_cli.train import main; main(['run', '--help'])"


def call(clone: Path, place: Path, script: str, *args: str) -> float:
    """Return the CPU seconds of a fresh process."""
    places = os.pathsep.join([str(clone), str(clone / "cli")])
    kept = {"PYTHONPATH": places, "PYTHONPYCACHEPREFIX": str(place / "compiled")}
    environment = {**os.environ, **kept}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", script, *args]
    subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(clone: Path, place: Path, can_ask: bool) -> dict[str, float]:
    """Return the CPU seconds of each part. can_ask: whether a picture is drawn for the asking alone."""
    taken = {"help": call(clone, place, HELP)}
    marks = {}
    for side, args in {"plain": (), "drawn": ("--draw",) if can_ask else ()}.items():
        call(clone, place, RUN, *args)
        marks[side] = json.loads((place / "marks.json").read_text())
        subprocess.run(["rm", "-r", place / "run"], check=True)
    plain, drawn = marks["plain"], marks["drawn"]
    taken["import of torch"] = plain["torch"] - plain["python"]
    taken["to the first job"] = plain["job"] - plain["torch"]
    taken["behind the last job"] = plain["end"] - plain["trained"]
    taken["behind it, with a picture"] = drawn["end"] - drawn["trained"]
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    clones = {"here": HERE}
    if args.beside:
        clones["beside"] = args.beside.resolve()
    with tempfile.TemporaryDirectory() as name:
        places = {side: Path(name) / side for side in clones}
        for side, clone in clones.items():
            places[side].mkdir()
            call(clone, places[side], MAKE)
        can_ask = {
            side: "--draw" in (clone / "cli/niidpart_cli/train/options.py").read_text()
            for side, clone in clones.items()
        }
        turns = []
        for _ in range(args.repeats + 1):
            turns.append(
                {side: measure(clones[side], places[side], can_ask[side]) for side in clones}
            )
    # In the first turn Python's files are compiled.
    for part in turns[0]["here"]:
        print(part)
        for side in clones:
            values = [turn[side][part] for turn in turns[1:]]
            middle = statistics.median(values)
            print(f"  {side:8} {middle:.3f} ({min(values):.3f} to {max(values):.3f})")


if __name__ == "__main__":
    main()
