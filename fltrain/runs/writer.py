"""Writes the rounds of a run into its folder, each under digests that chain."""

from collections.abc import Sequence

from niidpart.splits.recipe import JSON

from ..checkpoints.series import CheckpointSeries
from ..checkpoints.state_digest import StateDigest
from ..checkpoints.store import Bound
from ..interface import State
from .folder import RunFolder
from .metrics import RoundMetrics


class RunWriter:
    """Writes down a run while it trains.

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
    """

    def __init__(
        self,
        folder: RunFolder,
        state: State,
        round: int,
        keep: str,
    ):
        self.folder, self.keep = folder, keep
        configuration = folder.configuration
        logged = folder.metrics_log.read(round)
        self._config = configuration.digest
        self._log = folder.metrics_log
        self._chain = logged[-1].chain if logged else configuration.start
        self._digest = StateDigest(state)
        self._checkpoints = CheckpointSeries(folder.store, round)

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
        self._checkpoints.note(self._digest.update(state, written))
        # Metrics first: they say which rounds there are. A missing time is no fault of a run.
        self._chain = self._log.append(metrics, self._digest.value, self._chain)
        self.folder.timing_log.append(timing)

    def save(self, state: State, round: int) -> None:
        """Write the checkpoint of a round. Older ones then go, except those that stay."""
        bound = Bound(config=self._config, metrics=self._chain, state=self._digest.value)
        self._checkpoints.write(state, round, bound)
        # Only now: at every moment a whole checkpoint is there to resume from.
        self._checkpoints.store.keep(self.keep)
