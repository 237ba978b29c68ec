"""LEAF's JSON by user, as its own reader and those of other libraries take it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Data, load
from ..data.readers.leaf import find_json_files
from ..errors import FileFault, UsageError
from ..features.examples import read_examples
from ..splits.split import FederatedSplit
from . import LOSABLE, Imported
from ._shared import ABOUT, about, example_bytes, read_about, shards

__all__ = ["leaf"]

HOLDS = frozenset(LOSABLE) - {"val", "columns", "fresh"}
_GREY = [
    str(np.float32(k) / np.float32(255)) for k in range(256)
]  # nine digits bring a float32 back as it is


def leaf(split: FederatedSplit, data: Data) -> Iterator[tuple[str, bytes]]:
    """LEAF's JSON by user: train/data_I.json and test/data_I.json. Caldas et al., 2018.

    In each users, num_samples, and user_data with x (a flat list of numbers an example) and y (class ids). Users are called party_00, party_01,
    ..., so that their order is the parties' in every reader; all stand in both folders, also those without examples. test is the parties' own test
    parts. uint8 images are divided by 255. niidpart.json beside them has the names of the classes.
    """
    width = len(str(split.n_parties - 1))
    text = 12 * example_bytes(split, data)
    for name in ("train", "test"):
        for i, parties in enumerate(shards(split.parts[name], text)):
            users = [f"party_{p:0{width}}" for p in parties]
            sizes = [int(split.parts[name].sizes[p]) for p in parties]
            own = [
                f"{json.dumps(user)}:{_user(split, data, name, p)}"
                for user, p in zip(users, parties, strict=True)
            ]
            head = f'"users":{json.dumps(users)},"num_samples":{json.dumps(sizes)}'
            yield (
                f"{name}/data_{i:04}.json",
                f'{{{head},"user_data":{{{",".join(own)}}}}}\n'.encode(),
            )
    yield ABOUT, about(split)


def _user(split: FederatedSplit, data: Data, part: str, party: int) -> str:
    if not split.parts[part].sizes[party]:
        return '{"x":[],"y":[]}'
    x, y, _ = read_examples(split, data, party, part, lossy=True)
    return f'{{"x":[{",".join(_numbers(x.reshape(len(x), -1)))}],"y":{json.dumps(y.tolist())}}}'


def _numbers(x: NDArray[Any]) -> Iterator[str]:
    """Each row as a list in JSON, in as many digits as bring it back."""
    if not np.isfinite(x).all():
        raise UsageError("the features hold values that are not finite, which JSON cannot say")
    for row in x:
        texts = (
            [_GREY[v] for v in row.tolist()]
            if x.dtype == np.uint8
            else [repr(v) for v in row.tolist()]
            if x.itemsize == 8
            else map(str, row)
        )
        yield f"[{','.join(texts)}]"


def read(folder: Path, data: Data | None) -> Imported:
    """A folder of FEMNIST as LEAF writes it (train/*.json, test/*.json); it is the data set too.

    Parties are its users, in the order of the files. test gives the parties' own test parts. Its rows are those of the data set `femnist`, pooled
    where there is a test set, so `verify` and training find the features in the folder again. Other data of LEAF has no source in niidpart, and is
    refused.
    """
    if data is not None:
        raise UsageError("a folder of LEAF holds its examples itself; leave out the data set")
    if not find_json_files(folder / "train"):
        raise FileNotFoundError(f"there is no train/*.json in {folder}")
    users = list(
        dict.fromkeys(
            user
            for part in ("train", "test")
            for path in find_json_files(folder / part)
            for user in _users(path)
        )
    )
    try:
        apart = load("femnist", folder)
        whole = apart if apart.test_labels is None else load("femnist", folder, pool=True)
    except ValueError as error:
        raise FileFault(
            f"{folder}: {error}. Of LEAF's data sets only FEMNIST can be imported: 784 numbers an image, labels 0..61"
        ) from error
    if whole.groups is None:
        raise FileFault(f"{folder}: its images have no users")
    place = {user: p for p, user in enumerate(users)}
    party = np.array([place[name] for name in whole.group_names], np.int64)[whole.groups]
    rows, n = np.arange(len(whole.labels)), len(apart.labels)
    _whole(folder, {"train": n, "test": len(rows) - n})
    parts = {"train": (party[:n], rows[:n])} | (
        {"test": (party[n:], rows[n:])} if len(rows) > n else {}
    )
    return Imported(whole, len(users), parts)


def _whole(folder: Path, sizes: dict[str, int]) -> None:
    """FileFault where niidpart.json speaks of other numbers of examples."""
    stated = read_about(folder).get("examples", {})
    for part, n in sizes.items():
        if isinstance(stated, dict) and stated.get(part, n) != n:
            what = f"{folder / part} holds {n} examples and {ABOUT} says {str(stated[part])[:20]}"
            raise FileFault(
                f"{what}; get the folder anew, or remove {ABOUT} to import the users as they are"
            )


def _users(path: Path) -> list[str]:
    """The users of a file, also those without examples."""
    from ..data.readers.files import open_packed

    with open_packed(path) as f:
        try:
            users = json.load(f)["users"]
            if not isinstance(users, list) or not all(isinstance(user, str) for user in users):
                raise UsageError("'users' is no list of names")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise FileFault(
                f"{path} is no JSON of LEAF ({type(error).__name__}: {str(error)[:200]})"
            ) from error
    return users
