"""Dir(0.5) over many parties: this project beside four peers from PyPI, each in an environment of its own, in one run.

    python benchmarks/partition.py [--environments DIR] [--sizes 60000,10,10 1000000,100,1000 10000000,100,10000] [--repeats 3] [--limit 300]
    python benchmarks/partition.py --growth FILE.svg [--environments DIR]

The first call installs the peers under DIR (about 2 GB, most of it FedLab's torch). Every measurement is a fresh process with one thread that makes
the same labels, imports its library, and then measures the call that partitions them, and that alone: CPU seconds, and the peak of resident
memory beyond what the process had before the call (so beyond the labels). All ask for at least 10 examples a party. The libraries take turns;
the median is printed, with the ratio to ours, the machine and the versions. `>` marks a library that was stopped at the limit.

--growth draws CPU seconds against examples, classes and parties, one at a time, for ours and the fastest peer.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

CHILD = Path(__file__).with_name("partition_child.py")
PEERS = {  # name -> what pip installs; torch is pinned so that FedLab takes a CPU build where one is at hand
    "fl-data-generator": ["fl-data-generator==0.1.4"],
    "flwr-datasets": ["flwr-datasets==0.6.1"],
    "fedlab": ["torch==2.13.0", "fedlab==1.3.0"],
    "fedartml": ["fedartml==0.1.34", "scikit-learn"],
}
OURS = "niidpart"
HEAD = "| | CPU seconds, median (range) | MB beyond the labels | times ours |\n| --- | --- | --- | --- |"
SIZES = ["60000,10,10", "1000000,100,1000", "10000000,100,10000"]
GROWTH = {
    "examples": [(n, 100, 1000) for n in (100_000, 1_000_000, 10_000_000, 50_000_000)],
    "classes": [(1_000_000, k, 1000) for k in (2, 10, 100, 1000)],
    "parties": [(10_000_000, 100, p) for p in (10, 100, 1000, 10_000, 100_000)],
}


def interpreter(name: str, folder: Path) -> Path:
    """The python that has library `name`; its environment is made if it is not there."""
    if name == OURS:
        return Path(sys.executable)
    home = folder / name
    if not (home / "installed").exists():
        print(f"installing {' '.join(PEERS[name])} in {home}", file=sys.stderr, flush=True)
        venv.create(home, with_pip=True, clear=True)
        for package in PEERS[name]:
            subprocess.run(
                [home / "bin/python", "-m", "pip", "install", "--quiet", package], check=True
            )
        (home / "installed").touch()
    return home / "bin/python"


def measure(
    name: str, size: tuple[int, int, int], folder: Path, limit: float
) -> dict[str, Any] | None:
    """What the child measured, None if it was stopped at the limit."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [interpreter(name, folder), CHILD, name, *map(str, size)]
    try:
        done = subprocess.run(
            command, env=os.environ | one_thread, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:100]}
    return json.loads(done.stdout.splitlines()[-1])


def in_turns(
    names: list[str], size: tuple[int, int, int], folder: Path, repeats: int, limit: float
) -> dict[str, list[dict[str, Any] | None]]:
    """{name: its measurements}; a library that did not finish once is not asked again."""
    found: dict[str, list[dict[str, Any] | None]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            if all(m and "error" not in m for m in found[name]):
                found[name].append(measure(name, size, folder, limit))
    return found


def row(name: str, measured: list[dict[str, Any] | None], ours: float, limit: float) -> str:
    if None in measured:
        return f"| {name} | > {limit:.0f} | | > {limit / ours:.0f} |"
    if errors := [m["error"] for m in measured if m and "error" in m]:
        return f"| {name} | failed: {errors[0]} | | |"
    cpu = [m["cpu"] for m in measured if m]
    middle = statistics.median(cpu)
    memory = statistics.median(m["megabytes"] for m in measured if m)
    label = f"{name} {measured[0]['version']}, numpy {measured[0]['numpy']}"
    return f"| {label} | {middle:.3g} ({min(cpu):.3g} to {max(cpu):.3g}) | {memory:.0f} | {middle / ours:.1f} |"


def compare(arguments: argparse.Namespace) -> None:
    print(machine())
    for text in arguments.sizes:
        n, k, p = size = tuple(int(x) for x in text.split(","))
        measured = in_turns(
            [OURS, *PEERS], size, arguments.environments, arguments.repeats, arguments.limit
        )
        ours = statistics.median(m["cpu"] for m in measured[OURS] if m)
        print(f"\n{n:,} examples, {k} classes, {p:,} parties\n\n{HEAD}")
        for name, results in measured.items():
            print(row(name, results, ours, arguments.limit), flush=True)


def growth(arguments: argparse.Namespace) -> None:
    """Draws and prints CPU seconds as one of examples, classes and parties grows, for ours and the fastest peer."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    print(machine())
    for i, (axis, sizes) in enumerate(GROWTH.items()):
        ax = figure.add_subplot(1, 3, i + 1)
        x = [size[list(GROWTH).index(axis)] for size in sizes]
        for name, marker, colour in ((OURS, "o", "#0072B2"), ("fl-data-generator", "s", "#D55E00")):
            results = [
                in_turns([name], size, arguments.environments, arguments.repeats, arguments.limit)[
                    name
                ]
                for size in sizes
            ]
            done = [
                (a, statistics.median(m["cpu"] for m in r if m))
                for a, r in zip(x, results, strict=True)
                if all(m and "cpu" in m for m in r)
            ]
            print(
                f"{name}, {axis}: " + ", ".join(f"{a:,}: {seconds:.3f} s" for a, seconds in done),
                flush=True,
            )
            ax.loglog(*zip(*done, strict=True), marker=marker, color=colour, label=name)
        fixed = [
            f"{v:,} {w}"
            for v, w in zip(sizes[0], ("examples", "classes", "parties"), strict=True)
            if w != axis
        ]
        ax.set(xlabel=axis, ylabel="CPU seconds" if i == 0 else "", title=", ".join(fixed))
        ax.title.set_fontsize(9)
    figure.axes[0].legend(frameon=False)
    figure.savefig(
        arguments.growth, metadata={"Date": None} if arguments.growth.suffix == ".svg" else None
    )


def machine() -> str:
    info = Path("/proc/cpuinfo")
    models = (
        [
            line.partition(":")[2].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        if info.exists()
        else []
    )
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environments", type=Path, default=Path(".peers"))
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="N,K,P")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS")
    parser.add_argument("--growth", type=Path, metavar="FILE.svg")
    arguments = parser.parse_args()
    (growth if arguments.growth else compare)(arguments)


if __name__ == "__main__":
    main()
