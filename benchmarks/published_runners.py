"""How `published_code.py` has the code of each peer deal rows: nothing of that code is here.

LEAF's scripts read and write files, so they run as scripts, in this process, on a file of users
whose examples are the numbers of the rows. Of FedCD's notebook the cell with the samplers runs.
FedDyn's and FL-Simulator's code has its partition inside a class that loads images: it is given a
data set whose images are the numbers of the rows, and saves nothing. Of NIID-Bench's the function
runs, with a loader that hands over the labels.
"""

import json
import random
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Case = dict[str, Any]
Parts = list[list[Any]]  # [part][party] rows

FILES = {
    "pfllib": ["dataset/utils/dataset_utils.py"],
    "fl-bench": [
        f"data/utils/schemes/{name}.py"
        for name in ("dirichlet", "iid", "randomly_assign_classes", "shards")
    ],
    "map004": ["data/utils/schemes/dirichlet.py"],
    "fedcd": ["FedCD_Federated_Cloning_and_Deletion.ipynb"],
    "leaf": [],  # its scripts are called
    "feddyn": ["utils_dataset.py"],
    "fl-simulator": ["dataset.py"],
    "niidbench": ["utils.py"],
}


def run_pfllib(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    names["alpha"] = case.get("beta", 0.1)
    partition = {"dir": "dir", "extended-dir": "exdir", "labels": "pat", "homo": None}[case["rule"]]
    x, y, _ = names["separate_data"](
        (np.arange(len(labels)), labels),
        case["n_parties"],
        10,
        case["rule"] != "homo",
        case.get("even", False),
        partition,
        class_per_client=case.get("k", 2),
    )
    train, test = names["split_data"](x, y)
    return [[party["x"] for party in part] for part in (train, test)]


def run_fl_bench(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    """As generate_data.py goes on: a shuffle for each party, its first rows for its test part."""
    n_parties, rows, classes = case["n_parties"], np.arange(len(labels)), set(range(10))
    held: dict[str, Any] = {"data_indices": [[] for _ in range(n_parties)]}
    stats = {party: {"x": 0, "y": {}} for party in range(n_parties)}
    if case["rule"] == "dir":
        least = case.get("redraw_below", 10)
        names["dirichlet"](labels, rows, classes, n_parties, case["beta"], least, held, stats)
    elif case["rule"] == "labels":
        names["randomly_assign_classes"](labels, rows, classes, n_parties, case["k"], held, stats)
    elif case["rule"] == "shards":
        names["allocate_shards"](labels, rows, classes, n_parties, case["shards"], held, stats)
    else:
        sampled = np.array(random.sample(rows.tolist(), len(rows)))
        names["iid_partition"](labels[sampled], sampled, classes, n_parties, held, stats)
    return cut_test_parts(held["data_indices"], case.get("test_ratio", 0.25))


def cut_test_parts(held: list[Any], test_ratio: float) -> Parts:
    """Return each party's rows shuffled, the first of them for its test part, as FL-bench does."""
    train, test = [], []
    for rows in held:
        order = np.array(rows)
        np.random.shuffle(order)  # noqa: NPY002  as the published code
        n_test = int(len(order) * test_ratio)
        train.append(order[n_test:].tolist())
        test.append(order[:n_test].tolist())
    return [train, test]


def run_data_set(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    """FedDyn's and FL-Simulator's DatasetObject. A party may have a row twice."""
    rule = {"homo": "iid", "party-dir": "Dirichlet", "labels": "Pathological"}[case["rule"]]
    strength = case.get("beta", case.get("k", ""))
    kind, n_parties = names["DatasetObject"], case["n_parties"]
    images = np.arange(len(labels), dtype=np.float32).reshape(-1, 1, 1, 1)
    names |= stand_in(images, labels)
    given = {"rule_arg": strength, "unbalanced_sgm": case.get("sigma", 0)}
    if case["strategy"] == "feddyn":
        parties = kind("mnist", n_parties, rule, **given).clnt_x
    else:
        parties = kind("mnist", n_parties, case["seed"], rule, **given).client_x
    return [[np.asarray(party)[:, 0, 0, 0] for party in parties]]


class RaggedNumpy:
    """numpy, whose `asarray` takes lists of unequal length as it did when that code was written."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, values: Any) -> Any:
        unequal = isinstance(values, list) and len({len(value) for value in values}) > 1
        return values if unequal else np.asarray(values)

    def save(self, *_: Any) -> None:
        """Save nothing: the split is read from the object."""


def stand_in(images: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Return names of a data set and its loader in the place of torchvision's MNIST."""

    def load(is_train: bool, **_: Any) -> list[Any]:
        stop = len(labels) if is_train else 1
        arrays = (images[:stop], labels[:stop])
        return [tuple(SimpleNamespace(numpy=lambda array=array: array) for array in arrays)]

    def build(*_: Any, **__: Any) -> None:
        return None

    data = SimpleNamespace(DataLoader=load)
    sets = SimpleNamespace(MNIST=lambda train, **_: train)
    return {
        "np": RaggedNumpy(),
        "os": SimpleNamespace(path=SimpleNamespace(exists=lambda _: False), mkdir=build),
        "torch": SimpleNamespace(utils=SimpleNamespace(data=data)),
        "data": data,
        "torchvision": SimpleNamespace(datasets=sets),
        "transforms": SimpleNamespace(Compose=build, ToTensor=build, Normalize=build),
    }


def count_groups(n: int) -> np.ndarray:
    """Return the users of n examples: 30, of unequal size."""
    return np.arange(n) ** 2 * 5 % 1013 % 30


def run_map004(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    """Its scheme, and then as FL-bench, which it is a fork of."""
    rows, n_parties = np.arange(len(labels)), case["n_parties"]
    held: dict[str, Any] = {"data_indices": [[] for _ in range(n_parties)]}
    stats = {party: {"x": 0, "y": {}} for party in range(n_parties)}
    least = case.get("redraw_below", 40)
    names["dirichlet"](labels, rows, set(range(10)), n_parties, case["beta"], least, held, stats)
    return cut_test_parts(held["data_indices"], 0.25)


def run_fedcd(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    """The cell that calls the sampler, of 30 devices, the last sixth being the test images."""
    n_train, n_parties = case.get("n_train", len(labels) // 12), 30
    n_val, n_test = case.get("n_val", n_train // 3), case.get("n_test", n_train // 10)
    images = [(None, label) for label in labels.tolist()]
    n_pool = len(labels) - len(labels) // 6
    names["NUM_DEVICES"] = n_parties
    archetypes = [[device // 3] for device in range(n_parties)]
    bias = [random.uniform(0.6, 0.7) for _ in range(n_parties)]
    parts = []
    for pool, first, n in (
        (images[:n_pool], 0, n_train),
        (images[:n_pool], 0, n_val),
        (images[n_pool:], n_pool, n_test),
    ):
        held = names["data_sampler"]("uniform", pool, n, archetypes, bias)
        parts.append([[row + first for row in held[device]] for device in range(n_parties)])
    return [parts[0], parts[2]]  # what devices validate on is no part of a split


def run_leaf(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    """sample.py, remove_users.py and split_data.py, one after another, as preprocess.sh does."""
    data = Path("synthetic", "data")
    if not data.exists():
        shutil.copytree(names["checkout"] / "data" / "utils", "utils")
        write_users(data, labels)

    def call(script: str, *arguments: object) -> None:
        path = f"utils/{script}.py"
        sys.argv = [path, "--name", "synthetic", *map(str, arguments)]
        runpy.run_path(path, run_name="__main__")

    sys.path.insert(0, str(Path("utils").absolute()))  # of the modules that the scripts share
    mixed = ["--iid", "--u", case["n_parties"] / 30] if case["rule"] == "homo" else []
    call("sample", "--fraction", case["sampled"], "--seed", case["seed"], *mixed)
    call("remove_users", "--min_samples", case.get("min_group", 0))
    sys.path.pop(0)
    if "train_fraction" not in case:
        return [read_users(data / "rem_user_data")]
    call("split_data", "--frac", case["train_fraction"], "--seed", case["split_seed"])
    return [read_users(data / name) for name in ("train", "test")]


def write_users(data: Path, labels: np.ndarray) -> None:
    """Write LEAF's file of all users, and make the folders that its scripts write to."""
    for folder in ("all_data", "sampled_data", "rem_user_data", "train", "test"):
        (data / folder).mkdir(parents=True)
    groups = count_groups(len(labels))
    held = {f"user {g:02}": np.flatnonzero(groups == g).tolist() for g in range(30)}
    users = {name: {"x": rows, "y": labels[rows].tolist()} for name, rows in held.items()}
    sizes = [len(rows) for rows in held.values()]
    whole = {"users": list(held), "num_samples": sizes, "user_data": users}
    (data / "all_data" / "all_data.json").write_text(json.dumps(whole))


def read_users(folder: Path) -> list[list[int]]:
    """Return the rows of each user of LEAF's only file in a folder."""
    (path,) = folder.glob("*.json")
    found = json.loads(path.read_text())
    return [found["user_data"][user]["x"] for user in found["users"]]


def run_niidbench(names: dict[str, Any], labels: np.ndarray, case: Case) -> Parts:
    """Its partition_data, of which the labels alone are asked."""
    kinds = {"dir": "noniid-labeldir", "labels": f"noniid-#label{case.get('k')}"}
    kinds |= {"quantity": "iid-diff-quantity", "homo": "homo"}
    names["load_mnist_data"] = lambda _: (labels, labels, labels, labels)
    kind, n_parties = kinds[case["rule"]], case["n_parties"]
    held = names["partition_data"]("mnist", "", "", kind, n_parties, case.get("beta", 0.4))[4]
    return [[held[party] for party in range(n_parties)]]


def load_code(peer: str, checkout: Path) -> dict[str, Any]:
    """Return the names of the peer's files, without the imports that the partition does not need."""
    names: dict[str, Any] = {"__name__": peer, "checkout": checkout}
    for file in FILES[peer]:
        source = (checkout / file).read_text()
        if file.endswith(".ipynb"):
            cells = ["".join(cell["source"]) for cell in json.loads(source)["cells"]]
            (source,) = [cell for cell in cells if "def data_sampler" in cell]
            names |= {"np": np, "random": random}
        elif peer in ("feddyn", "fl-simulator"):
            _, _, rest = source.partition("class DatasetObject")
            source = "class DatasetObject" + rest.partition("\nclass ")[0]
        elif peer == "niidbench":
            _, _, rest = source.partition("\ndef partition_data")
            source = "def partition_data" + rest.partition("\ndef ")[0]
            names |= {"np": np, "random": random, "record_net_data_stats": lambda *_: None}
        else:
            missing = ("import ujson", "from torch", "from PIL")
            lines = source.partition("\nclass ")[0].splitlines()
            source = "\n".join(line for line in lines if not line.startswith(missing))
        exec(compile(source, file, "exec"), names)  # a checkout that the caller trusts
    return names


RUNNERS: dict[str, Callable[[dict[str, Any], np.ndarray, Case], Parts]] = {
    "pfllib": run_pfllib,
    "fl-bench": run_fl_bench,
    "map004": run_map004,
    "fedcd": run_fedcd,
    "leaf": run_leaf,
    "feddyn": run_data_set,
    "fl-simulator": run_data_set,
    "niidbench": run_niidbench,
}
