"""A run on disk: what was asked, on which machine, a line a round, and checkpoints.

A killed run resumes from them. Nothing here is pickled, and no link in the folder is followed.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from niidpart.renamed import warn_renamed
from niidpart.splits.recipe import JSON

from ..checkpoints.names import list_own_names
from ..disk.locks import lock_file
from ..disk.plain_folder import PlainFolder
from ..disk.sealed import read_sealed, require_sealed, write_sealed
from ..disk.staging import stage_folder
from .configuration import CONFIG, Configuration, read_configuration, write_configuration
from .ending import DIVERGED
from .finding import require_plain, require_run_folder
from .metrics import RoundMetrics
from .metrics_log import METRICS, MetricsLog
from .rewinding import read_history, restore_before_damage, restore_if_whole, restore_newest
from .sweep_folder import is_sweep, share_sweep
from .timing_log import TIMING, TimingLog

if TYPE_CHECKING:  # states take torch, and seconds; whoever reads metrics needs neither
    from ..checkpoints.store import CheckpointStore
    from ..interface import State

ENVIRONMENT, SPLIT, PICTURE = "environment.json", "split.h5", "curves.png"
CHECKPOINTS = "checkpoints"
RUN_ID, COMMIT = "run", "commit"  # in environment.json
_FILES = (CONFIG, ENVIRONMENT, SPLIT, METRICS, TIMING, PICTURE, DIVERGED)


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, made by `create` and found again by `open`.

    Parameters
    ----------
    path : Path

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
        cls,
        path: str | Path,
        config: JSON,
        environment: JSON,
        split: bytes,
        state: "State",
    ) -> "RunFolder":
        """Create the folder of a new run, with the checkpoint of round 0, to resume from.

        Parameters
        ----------
        path : str or Path
        config, environment : dict
            What was asked for and chosen; on what machine.
        split : bytes
        state : State

        Returns
        -------
        RunFolder

        Raises
        ------
        RunError
            If something is there already: an earlier run is never written over.
        """
        from ..checkpoints.state_digest import digest_state
        from ..checkpoints.store import Bound

        start = digest_state(state)
        with stage_folder(path) as new:
            folder = PlainFolder(new)
            folder.write(SPLIT, split, is_last=False)
            write_sealed(folder, ENVIRONMENT, environment)
            digest = write_configuration(folder, config, start)
            cls(new).store.write(state, 0, Bound(config=digest, metrics=start, state=start))
        return cls(Path(path))

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Return the folder of a run.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        RunFolder

        Raises
        ------
        RunError
            Where there is none, or a sweep, or a link in the place of one of its files.
        """
        require_run_folder(path)
        opened = cls(Path(path))
        require_plain(opened._folder, _FILES)
        checkpoints = opened._folder.enter(CHECKPOINTS)
        require_plain(checkpoints, list_own_names(checkpoints.list_names()))
        return opened

    @classmethod
    def opened(cls, path: str | Path) -> "RunFolder":
        """Return `open(path)`, by its name of earlier versions.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        RunFolder
        """
        warn_renamed("RunFolder.opened", "RunFolder.open")
        return cls.open(path)

    @property
    def _folder(self) -> PlainFolder:
        return PlainFolder(self.path)

    @property
    def store(self) -> "CheckpointStore":
        """The checkpoints."""
        from ..checkpoints.store import CheckpointStore

        return CheckpointStore(self._folder.enter(CHECKPOINTS), self.configuration.checkpoint_every)

    @property
    def metrics_log(self) -> MetricsLog:
        """The metrics with their digests."""
        return MetricsLog(self._folder, self.configuration.start)

    @property
    def timing_log(self) -> TimingLog:
        """Wall times of the rounds."""
        return TimingLog(self._folder)

    @contextlib.contextmanager
    def lock(self, *, is_shared: bool = False) -> Iterator[None]:
        """Lock the folder for the one process that trains, or shared for any that look at it.

        Parameters
        ----------
        is_shared : bool

        Yields
        ------
        None

        Raises
        ------
        RunError
            If another one trains, or trains the whole sweep which this run is part of.
        """
        sweep = self.path.resolve().parent
        with contextlib.ExitStack() as locks:
            if is_sweep(sweep):
                # Shared: runs of a sweep may be resumed side by side, each by its own process.
                locks.enter_context(share_sweep(sweep))
            kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
            locks.enter_context(lock_file(self.path / CONFIG, kind))
            yield

    def clean(self, keep: str) -> None:
        """Remove what a killed run left, for the process that resumes it.

        Parameters
        ----------
        keep : str
            `Settings.keep`.
        """
        self._folder.remove_temporaries(_FILES)
        self.store.clean()
        self.store.keep(keep)

    @property
    def configuration(self) -> Configuration:
        """config.json, and its digest."""
        return read_configuration(self._folder)

    @property
    def config(self) -> JSON:
        """What was asked for, and what was chosen."""
        return self.configuration.value

    @property
    def environment(self) -> JSON:
        """On what the run was started."""
        sealed = read_sealed(self._folder, ENVIRONMENT)
        if self.configuration.digest:  # a folder of an earlier version has none
            require_sealed(sealed, self.path / ENVIRONMENT)
        return sealed.value

    @property
    def split_file(self) -> Path:
        """The copy of the split file. RunError where it is a link."""
        self._folder.has(SPLIT)
        return self.path / SPLIT

    @property
    def history(self) -> list[RoundMetrics]:
        """The metrics of each round, in order. A killed run's torn last line does not count."""
        return [one.metrics for one in self.metrics_log.read()]

    def write_picture(self, picture: bytes) -> Path:
        """Write the curves, and return where they are.

        Parameters
        ----------
        picture : bytes

        Returns
        -------
        Path
        """
        self._folder.write(PICTURE, picture)
        return self.path / PICTURE

    def cut(self, round: int) -> None:
        """Drop the checkpoints and metrics of later rounds: they will be computed again.

        Parameters
        ----------
        round : int

        Raises
        ------
        RunError
            If metrics of earlier rounds are gone, or are not those of the checkpoint.
        """
        log, store = self.metrics_log, self.store
        # Looked at before anything is changed, so that the user can put the file back.
        logged = read_history(self.path, store, log, round, log.start)
        store.drop_after(round)
        # Written anew in any case: what is appended must not reach a hard link of a backup.
        log.rewrite(logged)
        self.timing_log.cut(round)

    @property
    def newest(self) -> int:
        """The round of the newest checkpoint."""
        return self.store.list_places()[-1].round

    def restore(self, *, can_go_back: bool = False) -> tuple[int, "State"]:
        """Return the round of the newest checkpoint that is whole, and the state after it.

        A damaged one is named in a warning and the one before it is taken: never a silent restart.

        Parameters
        ----------
        can_go_back : bool
            Where lines of the metrics are damaged, take the newest checkpoint before them.

        Returns
        -------
        tuple of int, State

        Raises
        ------
        RunError
            If none is whole.
        """
        digest = self.configuration.digest
        if can_go_back:
            return restore_before_damage(self.path, self.store, digest, self.metrics_log)
        return restore_newest(self.path, self.store, digest)

    def restore_at(self, round: int) -> "State | None":
        """Return the state after exactly that round.

        Parameters
        ----------
        round : int

        Returns
        -------
        State or None
            None where it has no checkpoint, or one that is damaged.
        """
        return restore_if_whole(self.store, round, self.configuration.digest)
