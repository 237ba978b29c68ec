"""A run on disk: what was asked, on which machine, a line a round, and checkpoints that a killed run goes on from.

Nothing here is pickled, and every file but the two logs is written whole or not at all. A log's torn last line is cut off on resuming.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from niidpart.errors import FileFault, UsageError
from niidpart.files import sync_folder, write_whole

from .. import tree
from ..interface import State

_METRICS, _TIMING = "metrics.jsonl", "timing.jsonl"
_KEPT = 2  # checkpoints: the newest, and one to fall back on
_SWEEP = ".sweep.json"  # hidden, so that the runs of a sweep are NAME/*
_DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    SafetensorError,
)  # what reading a checkpoint that is not whole can raise
_PARTS = ("models", "buffers", "server", "parties")
JSON = dict[str, Any]


class RunError(FileFault):
    """A run folder that cannot be used. The message says which file, and what to do."""


@dataclass(frozen=True)
class RunFolder:
    """path: the folder. Made by `create`, found again by `opened`."""

    path: Path

    @classmethod
    def create(
        cls, path: str | Path, config: JSON, environment: JSON, split: bytes, state: State
    ) -> "RunFolder":
        """A new run, with the checkpoint of round 0. RunError if something is there already: an earlier run is never written over."""
        with appearing(path) as new:
            write_whole(new / "split.h5", split)
            _write_json(new / "environment.json", environment)
            _write_json(new / "config.json", config)
            cls(new).save(state, 0)
        return cls(Path(path))

    @classmethod
    def opened(cls, path: str | Path) -> "RunFolder":
        if is_sweep(path):
            raise RunError(
                f"{path} is a sweep; name the run folders in it: {path}/*, or go on with all of it: fltrain resume {path}"
            )
        if not (Path(path) / "config.json").is_file():
            raise RunError(f"{path} is no run folder: there is no config.json in it")
        return cls(Path(path))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """For the one process that trains: RunError if another one does, or one that trains the whole sweep which this run is part of."""
        sweep = self.path.resolve().parent
        with (
            _lock(sweep / _SWEEP, fcntl.LOCK_SH) if is_sweep(sweep) else contextlib.nullcontext(),
            _lock(self.path / "config.json", fcntl.LOCK_EX),
        ):
            yield

    def clean(self) -> None:
        """Removes the temporary files that a killed run left. For the one process that goes on with the run."""
        for left in [*self.path.glob(".*.tmp"), *self.path.glob("checkpoints/.*.tmp")]:
            left.unlink()
        self._drop_old()

    @property
    def config(self) -> JSON:
        config = _read_json(self.path / "config.json")
        if missing := [
            k
            for k in ("format", "algorithm", "model", "split", "data_root", "settings")
            if k not in config
        ]:
            raise RunError(f"{self.path / 'config.json'} is damaged: it lacks {', '.join(missing)}")
        return config

    @property
    def environment(self) -> JSON:
        """On what the run was started."""
        return _read_json(self.path / "environment.json")

    @property
    def history(self) -> list[JSON]:
        """The metrics of each round, in order. A torn last line, as a killed run leaves it, does not count."""
        return _lines(self.path / _METRICS)

    def append(self, metrics: JSON, timing: JSON) -> None:
        """One round. Wall times stand apart, so that the metrics of a resumed run can be equal byte for byte."""
        _append(self.path / _METRICS, metrics)
        _append(self.path / _TIMING, timing)

    def cut(self, round: int) -> None:
        """Drops the checkpoints and metrics of later rounds: they will be computed again. RunError if metrics of earlier ones are gone."""
        kept = [m for m in self.history if m["round"] <= round]
        if [m["round"] for m in kept] != list(range(1, round + 1)):
            raise RunError(
                f"{self.path / _METRICS} lacks rounds before the checkpoint of round {round}; nothing was changed"
            )
        if later := [file for file in self.checkpoints() if file.stem > _stem(round)]:
            for file in later:
                file.unlink()
            sync_folder(
                self.path / "checkpoints"
            )  # before the metrics go: a checkpoint without those of its rounds cannot be resumed
        write_whole(self.path / _METRICS, "".join(_line(m) for m in kept).encode())
        times = [t for t in _lines(self.path / _TIMING) if t["round"] <= round]
        write_whole(self.path / _TIMING, "".join(_line(t) for t in times).encode())

    def save(self, state: State, round: int) -> None:
        """The checkpoint of a round. It counts once its JSON is there, which has the digest of its tensors; older ones then go, but one."""
        parts = {part: getattr(state, part) for part in _PARTS}
        flat = tree.flatten(parts)
        data = save(_apart(flat))
        base = self.path / "checkpoints" / _stem(round)
        write_whole(base.with_suffix(".safetensors"), data)
        head = {
            "round": round,
            "sha256": hashlib.sha256(data).hexdigest(),
            "names": list(flat),
            "empty": tree.empties(parts),
        }
        _write_json(base.with_suffix(".json"), head)
        self._drop_old()

    def _drop_old(self) -> None:
        """All checkpoints but the newest two, and tensors that never got their JSON."""
        kept = self.checkpoints()[-_KEPT:]
        for file in (self.path / "checkpoints").glob("round-*"):
            if file.with_suffix(".json") not in kept:
                file.unlink()

    def checkpoints(self) -> list[Path]:
        """The JSON of each checkpoint, oldest first."""
        return sorted((self.path / "checkpoints").glob("round-*.json"))

    @property
    def newest(self) -> int:
        """The round of the newest checkpoint."""
        return int(self.checkpoints()[-1].stem.removeprefix("round-"))

    def restore(self) -> tuple[int, State]:
        """(round, state) of the newest checkpoint that is whole.

        A damaged one is named in a warning and the one before it is taken. RunError if none is whole or none is there: never a silent
        restart.
        """
        faults = []
        for file in reversed(self.checkpoints()):
            try:
                return _load(file)
            except _DAMAGE as error:
                faults.append(f"{file}: {error}")
                warnings.warn(
                    f"checkpoint {file} is damaged ({error}); going back to the one before",
                    stacklevel=2,
                )
        why = "; ".join(faults) or "there is none"
        raise RunError(
            f"no checkpoint of {self.path} is whole: {why}. Start the run again, with another --out"
        )

    def restore_at(self, round: int) -> State | None:
        """The state after exactly that round; None where it has no checkpoint, or one that is damaged."""
        try:
            return _load(self.path / "checkpoints" / f"{_stem(round)}.json")[1]
        except _DAMAGE:
            return None


@contextlib.contextmanager
def appearing(path: str | Path) -> Iterator[Path]:
    """A folder to write into, that stands at `path`, whole, when the block ends: whatever is found there later can be resumed.

    RunError if something is there already: an earlier run is never written over.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunError(
            f"{path} is there already and not empty; take another --out, or go on with it: fltrain resume {path}"
        )
    target = path.resolve()  # of a link to an empty folder: that folder
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield new
        os.replace(new, target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def each(paths: Iterable[str | Path]) -> list[str]:
    """The run folders named, those in it for a sweep."""
    return [
        str(run)
        for path in paths
        for run in ([Path(path) / name for name in read_cells(path)] if is_sweep(path) else [path])
    ]


def is_sweep(path: str | Path) -> bool:
    return (Path(path) / _SWEEP).is_file()


def sweep_locked(path: str | Path) -> contextlib.AbstractContextManager[None]:
    """For the one process that trains all runs of a sweep: RunError if another one trains them, or one of them. One file, however many they are."""
    return _lock(Path(path) / _SWEEP, fcntl.LOCK_EX)


@contextlib.contextmanager
def _lock(file: Path, kind: int) -> Iterator[None]:
    """kind: LOCK_EX for one process, LOCK_SH for any number that have it so."""
    with open(file) as f:
        try:
            fcntl.flock(f, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(
                f"{file.parent} is being trained by another process; wait until it ends"
            ) from error
        yield


def write_cells(path: Path, cells: Mapping[str, JSON]) -> None:
    """Makes a folder of run folders a sweep. cells: the numbers of each run, by the name of its folder, in order."""
    _write_json(path / _SWEEP, {"format": 1, "cells": dict(cells)})


def read_cells(path: str | Path) -> dict[str, JSON]:
    """What `write_cells` wrote. RunError where that is not there or damaged, or a run is gone."""
    path = Path(path)
    if not is_sweep(path):
        raise RunError(
            f"{path} holds no sweep: there is no {_SWEEP} in it; a single run goes on with fltrain resume {path}/RUN"
        )
    cells = _read_json(path / _SWEEP).get("cells")
    if (
        not isinstance(cells, dict)
        or not cells
        or not all(isinstance(numbers, dict) for numbers in cells.values())
    ):
        raise RunError(
            f"{path / _SWEEP} is damaged: it lacks cells; the runs beside it can still be resumed one by one"
        )
    if strange := [name for name in cells if name != Path(name).name or name in (".", "..")]:
        raise RunError(f"{path / _SWEEP} is damaged: {strange[0]!r} is no name of a folder in it")
    if gone := [name for name in cells if not (path / name).is_dir()]:
        raise RunError(
            f"{path} lacks its run {gone[0]}; put it back, or resume the others one by one"
        )
    return cells


def _stem(round: int) -> str:
    return f"round-{round:06d}"


def _load(file: Path) -> tuple[int, State]:
    head = _read_json(file)
    data = file.with_suffix(".safetensors").read_bytes()
    if hashlib.sha256(data).hexdigest() != head["sha256"]:
        raise UsageError(
            f"{file.with_suffix('.safetensors').name} is not what was written (its sha256 differs)"
        )
    if file.stem != _stem(head["round"]):
        raise UsageError(f"it says round {head['round']}")
    tensors = load(
        data
    )  # in no order; that of the names is part of the state, since sums over leaves follow it
    parts = tree.unflatten({name: tensors[name] for name in head["names"]}, head["empty"])
    return head["round"], State(**{part: parts.get(part, {}) for part in _PARTS})


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """On the host, each with memory of its own: safetensors refuses tensors that share theirs."""
    out: dict[str, Tensor] = {}
    seen = set()
    for name, t in tensors.items():
        host = t.detach().cpu().contiguous()
        memory = host.untyped_storage().data_ptr()
        out[name] = host.clone() if memory in seen else host
        seen.add(memory)
    return out


def _line(value: JSON) -> str:
    return json.dumps(value, allow_nan=False) + "\n"


def _lines(file: Path) -> list[JSON]:
    """The whole lines of a log. RunError if one of them is no JSON object with a round."""
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    try:
        values = [json.loads(line) for line in lines]
        if not all(isinstance(v, dict) and type(v.get("round")) is int for v in values):
            raise UsageError("a line is no JSON object with a round")
    except (ValueError, RecursionError) as error:
        raise RunError(f"{file} is damaged ({error}); nothing was changed") from error
    return values


def _append(path: Path, value: JSON) -> None:
    """One line, on the disk when this returns. A torn line that a killed run left is cut first."""
    try:
        with open(path, "ab+") as f:
            if f.tell() and _last_byte(f) != b"\n":
                f.seek(0)
                f.truncate(f.read().rfind(b"\n") + 1)
            f.write(_line(value).encode())
            f.flush()
            os.fsync(f.fileno())
    except OSError as error:
        what = f"{path} could not be written: {error.strerror}; what the run has reached is kept: make room, then fltrain resume {path.parent}"
        raise OSError(error.errno, what) from error


def _last_byte(f: BinaryIO) -> bytes:
    f.seek(-1, os.SEEK_END)
    return f.read(1)


def _write_json(path: Path, value: JSON) -> None:
    write_whole(path, (json.dumps(value, indent=2) + "\n").encode())


def _read_json(path: Path) -> JSON:
    try:
        value = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({error})") from error
    if not isinstance(value, dict):
        raise RunError(f"{path} is no JSON object")
    return value
