"""One measurement for one_party.py, run by the python that has the library: `one_party_child.py LIBRARY FOLDER WHAT PARTIES` prints one line of JSON.

WHAT is `rows` or `examples`. Imports first; then measures the first party, from files to arrays, and after it each of a hundred others.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from partition_child import resident

os.environ |= {
    "FLWR_TELEMETRY_ENABLED": "0",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
}
OTHERS = 100


def niidpart(folder: Path, what: str) -> Callable[[], Callable[[int], np.ndarray]]:
    import niidpart
    from niidpart.features.examples import read_examples

    def opened() -> Callable[[int], np.ndarray]:
        split = niidpart.open(folder / "split.h5")
        if what == "rows":
            return split.train.party
        data = niidpart.open_data(split)
        return lambda p: read_examples(split, data, p).x

    return opened


def flwr_datasets(folder: Path, what: str) -> Callable[[], Callable[[int], np.ndarray]]:
    from flwr_datasets import FederatedDataset
    from flwr_datasets.partitioner import NaturalIdPartitioner

    def opened() -> Callable[[int], np.ndarray]:
        partitioner = NaturalIdPartitioner(partition_by="party")
        federated = FederatedDataset(
            dataset=str(folder / what), partitioners={"train": partitioner}, shuffle=False
        )
        key = "row" if what == "rows" else "x"
        return lambda p: federated.load_partition(p).with_format("numpy")[key][:]

    return opened


LIBRARIES = {"niidpart": niidpart, "flwr-datasets": flwr_datasets}


def main() -> None:
    name, folder, what, parties = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    opened = LIBRARIES[name](folder, what)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, start, wall = resident("VmRSS"), time.process_time(), time.perf_counter()
    party = opened()
    first = party(parties // 2)
    cpu, seconds, peak = time.process_time() - start, time.perf_counter() - wall, resident("VmHWM")
    start, held = time.process_time(), [int(np.asarray(first, np.int64).sum())]
    for p in range(0, parties, parties // OTHERS):
        held.append(int(np.asarray(party(p), np.int64).sum()))
    each = (time.process_time() - start) / (len(held) - 1)
    said = {
        "cpu": cpu,
        "seconds": seconds,
        "megabytes": (peak - before) / 1e6,
        "each": each,
        "sums": held,
    }
    print(json.dumps(said | {"version": version(name), "numpy": np.__version__}))


if __name__ == "__main__":
    main()
