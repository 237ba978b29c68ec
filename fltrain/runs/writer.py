"""Writes the rounds of a run into its folder, each under digests that chain."""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from niidpart.splits.recipe import JSON

from ..checkpoints.series import CheckpointSeries
from ..checkpoints.snapshot import Snapshot
from ..checkpoints.state_digest import StateDigest, digest_state
from ..checkpoints.store import Bound
from ..engine.forking import FORKING
from ..interface import State
from .folder import RunFolder
from .metrics import RoundMetrics


class _Reached(NamedTuple):
    """The last round whose metrics are written down, and what its checkpoint is bound to."""

    round: int
    bound: Bound


class RunWriter:
    """Writes down a run while it trains: metrics at once, checkpoints beside the next rounds.

    Whoever writes over rows of parties says so before, by `hold`.

    Parameters
    ----------
    folder : RunFolder
        Which the caller holds; its metrics end where the run starts.
    state : State
        From which the run starts.
    round : int
        After which it starts.
    keep : str
        Which checkpoints stay, `Settings.keep`.
    thread : ThreadPoolExecutor, optional
        That writes checkpoints, one after another; None to write each before what comes next.
    """

    def __init__(
        self,
        folder: RunFolder,
        state: State,
        round: int,
        keep: str,
        thread: ThreadPoolExecutor | None,
    ):
        self.folder, self.keep = folder, keep
        self.spent = 0.0  # seconds that checkpoints have taken
        configuration = folder.configuration
        logged = folder.metrics_log.read(round)
        self._config = configuration.digest
        self._log = folder.metrics_log
        self._chain = logged[-1].chain if logged else configuration.start
        self._digest = StateDigest(state)
        self._checkpoints = CheckpointSeries(folder.store, round)
        self._thread = thread
        self._writing: Future[None] | None = None
        self._snapshot: Snapshot | None = None  # that is being written
        self._taken: _Reached | None = None  # of the newest snapshot
        self._reached: _Reached | None = None  # None where that round has its checkpoint

    @property
    def is_writing(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._writing is not None and not self._writing.done()

    def append(
        self,
        metrics: RoundMetrics,
        timing: JSON,
        state: State,
        written: Sequence[int] | None,
    ) -> None:
        """Write down a round.

        written: the parties whose rows it wrote, once for each job; None if nobody knows.
        """
        self._reached = None  # digest and metrics are of two rounds until this is done
        self._checkpoints.note(self._digest.update(state, written))
        # Metrics first: they say which rounds there are. A missing time is no fault of a run.
        self._chain = self._log.append(metrics, self._digest.value, self._chain)
        self.folder.timing_log.append(timing)
        bound = Bound(config=self._config, metrics=self._chain, state=self._digest.value)
        self._reached = _Reached(metrics["round"], bound)

    def hold(self, parties: Sequence[int]) -> None:
        """Keep rows of parties for the checkpoint that is being written; they change next.

        Where that would be too many, wait for it.
        """
        snapshot = self._snapshot  # which the thread drops when it has written it
        if snapshot is not None and not snapshot.hold(parties):
            self.settle()

    def save(self, state: State) -> None:
        """Write the checkpoint of the round before, with a thread beside what comes next.

        The one before it is waited for. Older ones then go, except those that stay.
        """
        self.settle()
        if self._reached is None:
            return
        snapshot = self._checkpoints.take(state)
        self._taken, self._reached = self._reached, None
        if self._thread is None:
            self._write(snapshot, self._taken)
        else:
            self._snapshot = snapshot
            self._writing = self._thread.submit(self._write, snapshot, self._taken)

    def save_reached(self, state: State) -> None:
        """Write the checkpoint of the round before, where it is none yet and its state stands.

        For a run that ends before its time, maybe in the midst of writing rows over. Where writing
        failed before, it is tried once more, with a whole state.
        """
        try:
            self.settle()
        except OSError:
            if not self._can_save(state):
                raise
        if self._can_save(state):
            self.save(state)
            self.settle()

    def _can_save(self, state: State) -> bool:
        """Return whether a state is that of the round before, which has no checkpoint yet."""
        return self._reached is not None and digest_state(state) == self._reached.bound.state

    def settle(self) -> None:
        """Wait until what is being written is on the disk; the error where that failed."""
        writing = self._writing
        if writing is None:
            return
        try:
            writing.result()
        except Exception:
            if self._reached is None:
                self._reached = self._taken
            raise
        finally:
            if writing.done():  # and not where Ctrl-C ended the waiting
                self._writing = None

    def _write(self, snapshot: Snapshot, reached: _Reached) -> None:
        """Write a checkpoint. Nothing else looks at the checkpoints meanwhile."""
        began = time.perf_counter()
        try:
            with FORKING:
                self._checkpoints.write(snapshot, reached.round, reached.bound)
                # Only now: at every moment a whole checkpoint is there to resume from.
                self._checkpoints.store.keep(self.keep)
        finally:
            self._snapshot = None  # or its models and rows would stay until the next one
            self.spent += time.perf_counter() - began
