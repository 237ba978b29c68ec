"""A run on disk: what was asked, on which machine, a line a round, and checkpoints.

A killed run resumes from them. Nothing here is pickled.
"""

import contextlib
import fcntl
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from niidpart.files import sync_folder, write_whole
from niidpart.renamed import warn_renamed

from ..interface import State
from .checkpoints import DAMAGE, name_checkpoint, read_checkpoint, write_checkpoint
from .files import (
    JSON,
    RunError,
    append_line,
    lock_file,
    read_json,
    read_lines,
    stage_folder,
    write_json,
    write_lines,
)
from .metrics import RoundMetrics, as_metrics
from .sweep_folder import is_sweep, share_sweep

_METRICS, _TIMING = "metrics.jsonl", "timing.jsonl"
_KEPT = 2  # checkpoints: the newest, and one to fall back on
_NEEDED = ("format", "algorithm", "model", "split", "data_root", "settings")


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, made by `create` and found again by `open`.

    Parameters
    ----------
    path : Path
        Where it lies.

    Examples
    --------
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5, seed=0)
    >>> run = fltrain.run(split, model="linear", rounds=1, local_epochs=1, out="runs/fedavg")
    >>> RunFolder.open("runs/fedavg").history[-1]["round"]
    1
    """

    path: Path

    @classmethod
    def create(
        cls, path: str | Path, config: JSON, environment: JSON, split: bytes, state: State
    ) -> "RunFolder":
        """Create the folder of a new run, with the checkpoint of round 0.

        RunError if something is there already: an earlier run is never written over.
        """
        with stage_folder(path) as new:
            write_whole(new / "split.h5", split)
            write_json(new / "environment.json", environment)
            write_json(new / "config.json", config)
            # Resuming needs a checkpoint even if the first round is never finished.
            cls(new).save(state, 0)
        return cls(Path(path))

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Return the folder of a run. RunError where a path is none, or a sweep."""
        if is_sweep(path):
            raise RunError(
                f"{path} is a sweep; name the run folders in it: {path}/*, "
                f"or go on with all of it: fltrain resume {path}"
            )
        if not (Path(path) / "config.json").is_file():
            raise RunError(f"{path} is no run folder: there is no config.json in it")
        return cls(Path(path))

    @classmethod
    def opened(cls, path: str | Path) -> "RunFolder":
        """Return `open(path)`, by its name of earlier versions."""
        warn_renamed("RunFolder.opened", "RunFolder.open")
        return cls.open(path)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for the one process that trains.

        RunError if another one does, or one that trains the whole sweep which this run is part of.
        """
        sweep = self.path.resolve().parent
        with contextlib.ExitStack() as locks:
            if is_sweep(sweep):
                # Shared: runs of a sweep may be resumed side by side, each by its own process.
                locks.enter_context(share_sweep(sweep))
            locks.enter_context(lock_file(self.path / "config.json", fcntl.LOCK_EX))
            yield

    def clean(self) -> None:
        """Remove the temporary files that a killed run left. For the process that resumes it."""
        for left in [*self.path.glob(".*.tmp"), *self._checkpoints.glob(".*.tmp")]:
            left.unlink()
        self._drop_old()

    @property
    def config(self) -> JSON:
        """What was asked for, and what was chosen."""
        file = self.path / "config.json"
        config = read_json(file)
        missing = [key for key in _NEEDED if key not in config]
        if missing:
            raise RunError(f"{file} is damaged: it lacks {', '.join(missing)}")
        return config

    @property
    def environment(self) -> JSON:
        """On what the run was started."""
        return read_json(self.path / "environment.json")

    @property
    def history(self) -> list[RoundMetrics]:
        """The metrics of each round, in order. A killed run's torn last line does not count."""
        return [as_metrics(line) for line in read_lines(self.path / _METRICS)]

    def append(self, metrics: RoundMetrics, timing: JSON) -> None:
        """Write down a round.

        Wall times stand apart, so that the metrics of a resumed run can be equal byte for byte.
        """
        # Metrics first: they say which rounds there are. A missing time is no fault of a run.
        append_line(self.path / _METRICS, metrics)
        append_line(self.path / _TIMING, timing)

    def cut(self, round: int) -> None:
        """Drop the checkpoints and metrics of later rounds: they will be computed again.

        RunError if metrics of earlier ones are gone.
        """
        metrics = [m for m in self.history if m["round"] <= round]
        # Looked at before anything is changed, so that the user can put the file back.
        if [m["round"] for m in metrics] != list(range(1, round + 1)):
            raise RunError(
                f"{self.path / _METRICS} lacks rounds before the checkpoint of round {round}; "
                "nothing was changed"
            )
        later = [file for file in self.checkpoints() if file.stem > name_checkpoint(round)]
        for file in later:
            file.unlink()
        if later:
            # Before the metrics go: a checkpoint without those of its rounds cannot be resumed.
            sync_folder(self._checkpoints)
        write_lines(self.path / _METRICS, metrics)
        times = [t for t in read_lines(self.path / _TIMING) if t["round"] <= round]
        write_lines(self.path / _TIMING, times)

    def save(self, state: State, round: int) -> None:
        """Write the checkpoint of a round. Older ones then go, except one."""
        write_checkpoint(self._checkpoints, state, round)
        # Only now: at every moment a whole checkpoint is there to resume from.
        self._drop_old()

    @property
    def _checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def _drop_old(self) -> None:
        """Remove all checkpoints except the newest two, and tensors that never got their JSON."""
        kept = self.checkpoints()[-_KEPT:]
        for file in self._checkpoints.glob("round-*"):
            if file.with_suffix(".json") not in kept:
                file.unlink()

    def checkpoints(self) -> list[Path]:
        """Return the JSON of each checkpoint, oldest first."""
        return sorted(self._checkpoints.glob("round-*.json"))

    @property
    def newest(self) -> int:
        """The round of the newest checkpoint."""
        return int(self.checkpoints()[-1].stem.removeprefix("round-"))

    def restore(self) -> tuple[int, State]:
        """Return (round, state) of the newest checkpoint that is whole.

        A damaged one is named in a warning and the one before it is taken. RunError if none is
        whole or none is there: never a silent restart.
        """
        faults = []
        for file in reversed(self.checkpoints()):
            try:
                return read_checkpoint(file)
            except DAMAGE as error:
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
        """Return the state after exactly that round.

        None where it has no checkpoint, or one that is damaged.
        """
        try:
            return read_checkpoint(self._checkpoints / f"{name_checkpoint(round)}.json")[1]
        except DAMAGE:
            return None
