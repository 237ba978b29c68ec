"""When a checkpoint is written: by the number of rounds, or by a share of the time."""

import time
from collections import deque
from collections.abc import Callable

from ..common import Common
from .keeping import must_keep

MOST_LOST = 60.0  # seconds of training that a kill may cost, about, where a round is shorter
_FORECAST = 50  # rounds, of which the longest says how long the next one may be


class CheckpointPace:
    """Says after which rounds the runs that train side by side have a checkpoint.

    With `checkpoint_every` those that it divides. Else, by the clock, as often as writing takes at
    most `checkpoint_share` of the time, but so often that about `MOST_LOST` seconds of training are
    lost at most; besides those that `keep` asks for. The last round in any case.

    Parameters
    ----------
    common : Common
    now : callable
        The time, in seconds.
    """

    def __init__(self, common: Common, now: Callable[[], float] = time.monotonic):
        self._common = common
        self._now = now
        self._began = now()
        self._ended = self._began  # when the round before did
        self._written = self._began  # when the round of the last checkpoint did
        self._lasted: deque[float] = deque(maxlen=_FORECAST)  # seconds of the rounds before

    def is_due(self, round: int, spent: float, is_writing: bool) -> bool:
        """Return whether a round, which has just ended, has a checkpoint. Asked once a round.

        spent: seconds that writing checkpoints has taken. is_writing: whether one still is.
        """
        now = self._now()
        self._lasted.append(now - self._ended)
        is_due = self._is_settled(round) or self._is_time(now, spent, is_writing)
        self._ended = now
        if is_due:
            self._written = now
        return is_due

    def _is_settled(self, round: int) -> bool:
        """Return whether a round has one whatever the time."""
        common = self._common
        if round == common.rounds:
            return True
        if common.checkpoint_every is not None:
            return round % common.checkpoint_every == 0
        return must_keep(round, common.keep)

    def _is_time(self, now: float, spent: float, is_writing: bool) -> bool:
        if self._common.checkpoint_every is not None:
            return False
        if now - self._written + max(self._lasted) > MOST_LOST:
            return True  # by the end of the next round a kill would cost more
        return not is_writing and spent <= self._common.checkpoint_share * (now - self._began)
