"""What a command takes besides training: its help, what comes before the first job, and what follows the last one.

    python benchmarks/start.py [--beside CLONE] [--repeats 5]

The run: FedAvg on the digits, Dir(0.5) among 10 parties, three rounds, engine looped on one thread, by `fltrain run` into a folder. Each measurement is a
process of its own. CPU seconds, median and range: of `fltrain run --help` as a whole; of `import torch` alone, until it is done; of a run until its first
job, the import of torch among it; from its last job to where Python begins to take itself down; that where `--draw` asks for a picture; and of
the whole run, without. Where another clone of the project is given, of another commit, both take turns; one that knows no --draw always draws.
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
marks = {}
from niidpart_cli.train import main
import niidpart_cli.train.run as run

def write():
    marks["end"] = time.process_time()
    json.dump(marks, open("marks.json", "w"))

def watch_jobs(*args):
    import fltrain.engine.looped as looped
    train_job = looped.train_job

    def watch(*args):
        marks.setdefault("job", time.process_time())
        done = train_job(*args)
        marks["trained"] = time.process_time()
        return done

    looped.train_job = watch
    return run_one(*args)

run_one = run._run_one
run._run_one = watch_jobs
atexit.register(write)
how = "--rounds 3 --engine looped --threads 1 --device cpu --out run"
main(["run", "split.h5", *how.split(), *sys.argv[1:]])
"""
TORCH = "import json, time, torch; json.dump(time.process_time(), open('marks.json', 'w'))"
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
    call(clone, place, TORCH)
    taken["import torch"] = json.loads((place / "marks.json").read_text())
    marks, whole = {}, {}
    for side, args in {"plain": (), "drawn": ("--draw",) if can_ask else ()}.items():
        whole[side] = call(clone, place, RUN, *args)
        marks[side] = json.loads((place / "marks.json").read_text())
        subprocess.run(["rm", "-r", place / "run"], check=True)
    plain, drawn = marks["plain"], marks["drawn"]
    taken["to the first job"] = plain["job"]
    taken["after the last job"] = plain["end"] - plain["trained"]
    taken["after it, with a picture"] = drawn["end"] - drawn["trained"]
    taken["the whole run"] = whole["plain"]
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
            side: "--draw" in (clone / "cli/niidpart_cli/train/curves.py").read_text()
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
