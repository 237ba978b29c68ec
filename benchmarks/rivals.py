"""Rivals on their own benchmarks, and ours on the same work: seconds, memory and accuracy.

    python benchmarks/rivals.py --data-root DIR --checkouts DIR [--cases blazefl,pfl] [--scale small]

Each rival's own script runs unchanged, in an environment of its own, with the same build of torch
where there is one; then `fltrain run` does the same work from the command line, checkpoints
included. The sides of a case take turns. What one run of a side took is written to --results at
once, and is not measured again when the command is given once more; the tables are of all that is
there. So other code, ours or theirs, and another machine want another file. Linux alone.

DIR of --data-root holds MNIST/raw, and cifar10.npz or cifar-10-batches-py. DIR of --checkouts holds
the rivals' repositories by name, each at the commit that benchmarks/rival_cases names; PFLlib and
FedLab read and write their data there. Environments are made under --envs, 1 to 6 GB each.
"""

import argparse
import dataclasses
import importlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from rival_cases import Case, Place, Reading, Side
from rival_cases.data import lay_out
from rival_cases.environments import NotInstalled, make_environment, name_versions
from rival_cases.watch import Failed, watch

from fltrain.environment import describe

CASES = ("blazefl", "flower", "pfl", "fedlab", "pfllib", "flsim")
OURS = Reading(
    began=r"^engine ",
    ended=r"^round \d+/",
    accuracy=r"^round .*test ([\d.]+)%",
    percent=True,
)
HEAD = (
    "side",
    "rounds",
    "seconds of the rounds, median (range)",
    "seconds of the command",
    "CPU seconds of the command",
    "peak MB",
    "accuracy",
    "seconds of the rounds beside our fastest",
    "CPU seconds beside it",
)
Found = dict[str, object]


def list_ours(case: Case, place: Place) -> list[Side]:
    """Return our sides of a case: the engine that `auto` takes, and torch in processes."""
    program = (sys.executable, "-c")
    make, train = (
        (*program, f"from niidpart_cli.{name} import main; main()") for name in ("split", "train")
    )
    split = place.folder / "split.h5"
    models = str(Path(__file__).parent / "rival_cases" / "models.py")
    options = case.run(place.small).replace("MODELS", models).split()
    deal = (*make, "make", "--data-root", str(place.data), *case.split(place.small).split())
    sides = []
    for engine in case.engines:
        out = place.folder / f"run-{engine}"
        command = (*train, "run", str(split), *options, "--engine", engine, "--out", str(out))
        clear = ("rm", "-rf", str(out))
        side = Side(
            name=f"fltrain, {engine}",
            command=command,
            folder=place.folder,
            reading=OURS,
            steps=((*deal, "-o", str(split), "--force"), clear),
        )
        sides.append(side)
    return sides


def measure(side: Side, limit: float) -> Found:
    """Return what a run of the side took; {"error": reason} where it did not end well."""
    side.folder.mkdir(parents=True, exist_ok=True)
    for there, here in side.links:
        here.parent.mkdir(parents=True, exist_ok=True)
        here.unlink(missing_ok=True)
        here.symlink_to(there)
    for step in side.steps:
        done = subprocess.run(
            step,
            cwd=side.preparing or side.folder,
            env=os.environ | side.environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            words = done.stderr.strip().splitlines() or ["no reason given"]
            return {"error": f"before it began: {words[-1][:160]}"}
    try:
        taken = watch(side.command, side.folder, side.environment, side.reading, limit)
    except Failed as failed:
        return {"error": str(failed)}
    return dataclasses.asdict(taken)


def list_sides(case: Case, arguments: argparse.Namespace) -> tuple[list[Side], str]:
    """Return the sides of a case, the rival's first, and the versions of the rival's packages."""
    folder = arguments.work.absolute() / case.name
    data = arguments.work.absolute() / "data"
    checkout = arguments.checkouts.absolute() / case.repository
    if not checkout.is_dir():
        raise NotInstalled(f"its checkout {checkout} is not there; the commit is {case.commit}")
    python = make_environment(case, arguments.envs.absolute())
    place = Place(
        python=python,
        checkout=checkout,
        data=data,
        folder=folder,
        cores=arguments.cores,
        small=arguments.scale == "small",
    )
    return [*case.sides(place), *list_ours(case, place)], name_versions(python, case)


def read_results(path: Path) -> list[Found]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def run_case(case: Case, arguments: argparse.Namespace) -> None:
    """Measure what is not measured yet, in turns, and write it down."""
    try:
        sides, versions = list_sides(case, arguments)
    except NotInstalled as reason:
        print(f"{case.name}: {reason}", file=sys.stderr, flush=True)
        return
    about = {"case": case.name, "scale": arguments.scale}
    machine = describe(torch.device("cpu")) | {"cores": arguments.cores}
    stamp = {"versions": versions, "machine": machine}
    for turn in range(arguments.repeats):
        for side in sides:
            key = about | {"side": side.name, "turn": turn}
            measure_once(side, key, stamp, arguments)


def measure_once(side: Side, key: Found, stamp: Found, arguments: argparse.Namespace) -> None:
    """Measure a side's turn and write it down, unless it is there already."""
    known = [one for one in read_results(arguments.results) if key.items() <= one.items()]
    if any("error" not in one for one in known):
        return
    print(f"{key['case']}: {side.name}", file=sys.stderr, flush=True)
    found = key | stamp | measure(side, arguments.limit)
    with arguments.results.open("a") as file:
        file.write(json.dumps(found) + "\n")


def print_case(case: Case, results: list[Found], scale: str) -> None:
    mine = [one for one in results if (one["case"], one["scale"]) == (case.name, scale)]
    good = {name: list(runs) for name, runs in _group(mine) if runs}
    ours = {name: runs for name, runs in good.items() if name.startswith("fltrain")}
    print(f"\n## {case.name}\n\n{case.work}. {case.differs}\n")
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}")
    fastest = min(ours.values(), key=_take_median("seconds_of_rounds"), default=None)
    for name, runs in good.items():
        print(f"| {' | '.join(list_cells(name, runs, fastest))} |")
    failed = {str(one["side"]): str(one["error"]) for one in mine if "error" in one}
    for name, error in failed.items():
        if name not in good:
            print(f"| {name} | {error} |{' |' * (len(HEAD) - 2)}")
    if mine:
        print(f"\n{mine[-1]['versions']}.")


def list_cells(name: str, runs: list[Found], fastest: list[Found] | None) -> list[str]:
    """Return a row of the table."""
    rounds = [float(run["seconds_of_rounds"]) for run in runs]
    whole, cpu, peak = (
        _take_median(number)(runs) for number in ("seconds", "cpu_seconds", "megabytes")
    )
    accuracy = runs[-1]["accuracy"]
    beside = ["", ""]
    if fastest:
        beside = [
            f"{_take_median(number)(runs) / _take_median(number)(fastest):.2f}"
            for number in ("seconds_of_rounds", "cpu_seconds")
        ]
    return [
        name,
        str(runs[-1]["rounds"]),
        f"{statistics.median(rounds):.3g} ({min(rounds):.3g} to {max(rounds):.3g})",
        f"{whole:.1f}",
        f"{cpu:.1f}",
        f"{peak:,.0f}",
        "" if accuracy is None else f"{100 * float(accuracy):.2f} %",
        *beside,
    ]


def _group(runs: list[Found]) -> Iterator[tuple[str, list[Found]]]:
    """Give (side, its runs that ended well), in the order of the first ones."""
    for name in dict.fromkeys(str(run["side"]) for run in runs):
        yield name, [run for run in runs if run["side"] == name and "error" not in run]


def _take_median(number: str) -> Callable[[list[Found]], float]:
    return lambda runs: statistics.median(float(run[number]) for run in runs)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folders = {"metavar": "DIR", "type": Path}
    parser.add_argument("--data-root", **folders)
    parser.add_argument("--checkouts", default=Path(".rivals"), **folders)
    parser.add_argument("--envs", default=Path(".venv-bench"), **folders)
    parser.add_argument("--work", default=Path(".rivals-work"), **folders)
    parser.add_argument("--results", type=Path, default=Path("rivals.jsonl"), metavar="FILE")
    parser.add_argument("--cases", default=",".join(CASES), help=f"Default: {','.join(CASES)}.")
    parser.add_argument("--scale", choices=("full", "small"), default="full")
    parser.add_argument("--repeats", type=int, default=2, help="Turns of the sides.")
    parser.add_argument("--limit", type=float, default=3600.0, metavar="SECONDS")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--print", action="store_true", help="Print what is there; run nothing.")
    arguments = parser.parse_args()
    if unknown := set(arguments.cases.split(",")) - set(CASES):
        parser.error(f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    if not arguments.print and arguments.data_root is None:
        parser.error("--data-root is missing: the folder that holds MNIST/raw and cifar10.npz")
    return arguments


def main() -> None:
    arguments = read_arguments()
    modules = [
        importlib.import_module(f"rival_cases.{name}") for name in arguments.cases.split(",")
    ]
    cases = [module.CASE for module in modules]
    if not arguments.print:
        lay_out(arguments.data_root, arguments.work / "data")
        for case in cases:
            run_case(case, arguments)
    results = read_results(arguments.results)
    if results:
        here = results[-1]["machine"]
        print(", ".join(f"{name} {value}" for name, value in here.items()))
    for case in cases:
        print_case(case, results, arguments.scale)


if __name__ == "__main__":
    main()
