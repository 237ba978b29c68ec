"""One measurement for partition.py, run by the python that has the library: `partition_child.py LIBRARY N K P` prints one line of JSON.

Measures the call that partitions N labels and nothing before it; each library gets the labels in the form that it takes.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

BETA, AT_LEAST = 0.5, 10


def niidpart(labels: np.ndarray, parties: int) -> Callable[[], object]:
    import niidpart

    return lambda: (
        niidpart.make(
            labels, "dir", beta=BETA, n_parties=parties, min_size=AT_LEAST, seed=0
        ).train.indptr
    )


def fl_data_generator(labels: np.ndarray, parties: int) -> Callable[[], object]:
    from fl_data_generator.dirichlet import dirichlet_partition

    return lambda: dirichlet_partition(labels, parties, alpha=BETA, seed=0, min_size=AT_LEAST)


def flwr_datasets(labels: np.ndarray, parties: int) -> Callable[[], object]:
    import datasets
    from flwr_datasets.partitioner import DirichletPartitioner

    partitioner = DirichletPartitioner(
        parties,
        partition_by="label",
        alpha=BETA,
        min_partition_size=AT_LEAST,
        self_balancing=True,
        seed=0,
    )
    partitioner.dataset = datasets.Dataset.from_dict({"label": labels})
    return lambda: partitioner.load_partition(0)  # the first call partitions for all


def fedlab(labels: np.ndarray, parties: int) -> Callable[[], object]:
    from fedlab.utils.dataset.functional import hetero_dir_partition

    np.random.seed(0)  # noqa: NPY002 - its generator
    return lambda: hetero_dir_partition(
        labels, parties, int(labels.max()) + 1, BETA, min_require_size=AT_LEAST
    )


def fedartml(labels: np.ndarray, parties: int) -> Callable[[], object]:
    from fedartml import SplitAsFederatedData

    return lambda: SplitAsFederatedData.dirichlet_method(
        labels=labels, local_nodes=parties, alpha=BETA, random_state=0
    )


LIBRARIES = {
    "niidpart": niidpart,
    "fl-data-generator": fl_data_generator,
    "flwr-datasets": flwr_datasets,
    "fedlab": fedlab,
    "fedartml": fedartml,
}


def resident(field: str) -> int:
    """Bytes: VmRSS now, VmHWM at its highest since it was reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024


def main() -> None:
    library, n, k, p = sys.argv[1], *map(int, sys.argv[2:])
    labels = np.random.default_rng(0).integers(0, k, n)
    labels[:k] = np.arange(k)  # every class is there
    call = LIBRARIES[library](labels, p)
    Path("/proc/self/clear_refs").write_text("5")  # the highest begins again
    before, cpu = resident("VmRSS"), time.process_time()
    kept = call()
    cpu = time.process_time() - cpu
    print(
        json.dumps(
            {
                "cpu": cpu,
                "megabytes": (resident("VmHWM") - before) / 1e6,
                "version": version(library),
                "numpy": np.__version__,
            }
        )
    )
    del kept


if __name__ == "__main__":
    main()
