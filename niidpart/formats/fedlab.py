"""For FedLab: its dictionary of rows by party, as a pickle, and as a partitioner object."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from ..data import Data
from ..errors import FileFault, UsageError
from ..splits.part import PARTS
from ..splits.split import FederatedSplit
from . import LOSABLE, Imported
from ._shared import ABOUT, about, read_about

__all__ = ["fedlab", "partitioner"]

HOLDS = frozenset(LOSABLE) - {"columns", "transforms", "fresh", "recipe"}
_FILES = {"train": "client_dict.pkl", "val": "client_dict_val.pkl", "test": "client_dict_test.pkl"}


def fedlab(split: FederatedSplit, data: Data | None) -> Iterator[tuple[str, bytes]]:
    """FedLab's dictionary {party: rows}, as a pickle: client_dict.pkl, client_dict_val.pkl, client_dict_test.pkl.

    The rows are int64 arrays, as its partitioners have them. A pickle is a program: load only those that you wrote. niidpart.json beside them says
    which split it is, with the names of the classes.
    """
    for name, part in split.parts.items():
        if part.n or name == "train":
            rows = {p: part.party(p).astype(np.int64) for p in range(part.n_parties)}
            yield _FILES[name], pickle.dumps(rows, protocol=4)
    yield ABOUT, about(split)


def partitioner(split: FederatedSplit, part: Literal["train", "val", "test"] = "train") -> Any:
    """A FedLab `DataPartitioner`: `client_dict` {party: int64 rows}, `[party]`, len, `num_clients`. Needs fedlab."""
    from fedlab.utils.dataset.functional import samples_num_count
    from fedlab.utils.dataset.partition import DataPartitioner

    class SplitPartitioner(DataPartitioner):  # type: ignore[misc]
        """The parties of one split file."""

        def __init__(self) -> None:
            super().__init__()
            self.num_clients = split.n_parties
            self.client_dict = self._perform_partition()
            self.client_sample_count = samples_num_count(self.client_dict, self.num_clients)

        def _perform_partition(self) -> dict[int, Any]:
            return {p: rows.astype(np.int64) for p, rows in enumerate(split.parts[part])}

        def __getitem__(self, index: int) -> Any:
            return self.client_dict[index]

        def __len__(self) -> int:
            return len(self.client_dict)

    return SplitPartitioner()


def read(
    folder: Path,
    data: Data,
    *,
    trust_pickle: Annotated[
        bool, "Read pickles, which can run any program: you know who wrote them."
    ] = False,
) -> Imported:
    """A folder with client_dict.pkl, or such a file: {party: rows}, parties 0, 1, 2, ...

    A pickle runs what it says: trust_pickle allows that.
    """
    files = (
        {name: folder / file for name, file in _FILES.items()}
        if folder.is_dir()
        else {"train": folder}
    )
    files = {name: path for name, path in files.items() if path.is_file()}
    if "train" not in files:
        raise FileNotFoundError(f"there is no {_FILES['train']} in {folder}")
    if not trust_pickle:
        raise UsageError(
            f"{files['train']} is a pickle, which can run any program when it is read; if you know who wrote it, say --trust-pickle"
        )
    held = {name: _client_dict(path) for name, path in files.items()}
    n_parties = max(len(parties) for parties in held.values())
    parts = {}
    for name in PARTS:
        if name in held and any(map(len, held[name])):
            party = np.repeat(np.arange(len(held[name])), [len(rows) for rows in held[name]])
            parts[name] = (party, np.concatenate(held[name]))
    return Imported(data, n_parties, parts, about=read_about(folder) if folder.is_dir() else {})


def _client_dict(path: Path) -> list[Any]:
    """The rows of party 0, 1, ... of a pickle that somebody vouches for."""
    try:
        held = pickle.loads(path.read_bytes())
    except OSError:
        raise
    except Exception as error:  # a program may fail in any way
        raise FileFault(
            f"{path} cannot be unpickled ({type(error).__name__}: {str(error)[:200]})"
        ) from error
    if not isinstance(held, dict) or sorted(held, key=str) != sorted(range(len(held)), key=str):
        raise FileFault(f"{path} holds no dictionary of rows by party 0, 1, 2, ...")
    rows = [np.asarray(held[p]) for p in range(len(held))]
    if wrong := [
        p for p, r in enumerate(rows) if r.ndim != 1 or (len(r) and r.dtype.kind not in "iu")
    ]:
        raise FileFault(
            f"{path}: party {wrong[0]} has {rows[wrong[0]].dtype}{list(rows[wrong[0]].shape)}; a list of whole numbers is needed"
        )
    return [r.astype(np.int64) for r in rows]
