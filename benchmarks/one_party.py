"""Reading one party of 10,000: this project beside flwr-datasets, which has an environment of its own, in one run on the same rows.

    python benchmarks/one_party.py [--environments DIR] [--examples 1000000] [--parties 10000] [--repeats 3]

Writes a split of random labels with 64 features of one byte, and the same as `niidpart export --to flower`. Every measurement is a fresh process with
one thread that imports its library, and then measures what it takes from the files to one party's rows, or examples, as an array: CPU seconds and the
peak of resident memory beyond what the process had before. flwr-datasets turns parquet into its cache the first time (`first`) and has it the next
(`cached`); ours has none. `each` is one more party in the same process. Both sides' arrays are compared by their sums. The sides take turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from partition import OURS, interpreter, machine

import niidpart

CHILD, PEER = Path(__file__).with_name("one_party_child.py"), "flwr-datasets"
HEAD = "| | CPU seconds to the first party, median (range) | MB | times ours | each further party, ms |\n| --- | --- | --- | --- | --- |"


def prepare(folder: Path, n: int, parties: int) -> int:
    """The split file, its data set and both folders for flwr-datasets; the number of bytes of the split file."""
    rng = np.random.default_rng(0)
    np.savez(
        folder / "data.npz", x=rng.integers(0, 256, (n, 64), np.uint8), y=rng.integers(0, 10, n)
    )
    data = niidpart.load("npz", folder / "data.npz")
    split = niidpart.make(data, "dir", beta=0.5, n_parties=parties)
    niidpart.write(split, folder / "split.h5")
    niidpart.export(split, data, "flower", folder / "rows", features=False)
    niidpart.export(split, data, "flower", folder / "examples")
    return (folder / "split.h5").stat().st_size


def measure(
    name: str, folder: Path, what: str, parties: int, environments: Path, cache: Path
) -> dict[str, Any]:
    settings = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"), "1"
    ) | {"HF_HOME": str(cache)}
    command = [interpreter(name, environments), CHILD, name, folder, what, parties]
    done = subprocess.run(
        list(map(str, command)),
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{name}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def row(name: str, measured: list[dict[str, Any]], ours: float) -> str:
    cpu = [m["cpu"] for m in measured]
    middle, memory = statistics.median(cpu), statistics.median(m["megabytes"] for m in measured)
    each = 1000 * statistics.median(m["each"] for m in measured)
    return f"| {name} | {middle:.3g} ({min(cpu):.3g} to {max(cpu):.3g}) | {memory:.0f} | {middle / ours:.1f} | {each:.2f} |"


def compare(folder: Path, what: str, arguments: argparse.Namespace) -> None:
    found: dict[str, list[dict[str, Any]]] = {OURS: [], f"{PEER}, first": [], f"{PEER}, cached": []}
    for i in range(arguments.repeats):
        cache = folder / f"cache-{what}-{i}"
        for name, results in found.items():
            results.append(
                measure(
                    name.partition(",")[0],
                    folder,
                    what,
                    arguments.parties,
                    arguments.environments,
                    cache,
                )
            )
    if len({json.dumps(m["sums"]) for results in found.values() for m in results}) > 1:
        sys.exit("the two sides read different values")
    ours = statistics.median(m["cpu"] for m in found[OURS])
    print(f"\n{what}:\n\n{HEAD}")
    for name, results in found.items():
        label = name.replace(PEER, f"{PEER} {results[0]['version']}").replace(
            OURS, f"{OURS} {results[0]['version']}"
        )
        print(row(f"{label}, numpy {results[0]['numpy']}", results, ours), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environments", type=Path, default=Path(".peers"))
    parser.add_argument("--examples", type=int, default=1_000_000)
    parser.add_argument("--parties", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        size = prepare(Path(scratch), arguments.examples, arguments.parties)
        print(machine())
        print(
            f"{arguments.examples:,} examples, {arguments.parties:,} parties; the split file has {size / 1e6:.2f} MB"
        )
        for what in ("rows", "examples"):
            compare(Path(scratch), what, arguments)


if __name__ == "__main__":
    main()
