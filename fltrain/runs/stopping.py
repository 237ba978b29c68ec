"""Whether a run has ended before its last round, as what was asked for wants it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..settings import Settings
from ..settings.stopping import parse_stop_rule


@dataclass(frozen=True)
class EarlyStop:
    """The end of a run before its last round, since a metric reached what was asked for.

    Attributes
    ----------
    round : int
        The last one that was trained.
    rounds : int
        How many there would have been.
    metric : str
    value : float
        Of the metric after that round.
    stop_at : str
        As it was asked for.

    Examples
    --------
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5, seed=0)
    >>> run = fltrain.run(split, rounds=9, local_epochs=1, stop_at="accuracy=0.05")
    >>> run.stopped.round, run.stopped.rounds, run.stopped.metric
    (1, 9, 'test_accuracy')
    """

    round: int
    rounds: int
    metric: str
    value: float
    stop_at: str

    def __str__(self) -> str:
        return (
            f"ended early, after round {self.round} of {self.rounds}: "
            f"{self.metric} {self.value:.6g} reaches --stop-at {self.stop_at}"
        )


def find_early_stop(settings: Settings, history: Sequence[Mapping[str, Any]]) -> EarlyStop | None:
    """Return how a run ended before its last round; None for one that did not."""
    rule = settings.stop_rule
    if rule is None or settings.stop_at is None or len(history) >= settings.rounds:
        return None
    if not has_reached_end(settings, history):
        return None
    return EarlyStop(
        round=len(history),
        rounds=settings.rounds,
        metric=rule.metric,
        value=float(history[-1][rule.metric]),
        stop_at=settings.stop_at,
    )


def has_reached_end(settings: Settings, history: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the last round of a history reached what the run stops at."""
    rule = settings.stop_rule
    return rule is not None and bool(history) and rule.is_reached(history[-1])


def is_finished(config: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a run folder holds all rounds that its run will have.

    config: of the folder; an older one may not say how many rounds were asked for.
    """
    settings = config["settings"]
    asked = settings.get("rounds")
    if asked is None or len(history) >= asked:
        return True
    rule = settings.get("stop_at")
    return bool(rule and history and parse_stop_rule(rule).is_reached(history[-1]))
