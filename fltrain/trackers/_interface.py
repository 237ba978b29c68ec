"""What a tracker is: a context that a run's metrics are handed to. Needs no torch."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Log",
    "PlacedLog",
    "TrackedPlace",
    "TrackedRun",
    "Tracker",
    "select_lists",
    "select_numbers",
]

# log(round, metrics): called after each round.
Log = Callable[[int, Mapping[str, Any]], None]


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker is told of a run before its first round here.

    Parameters
    ----------
    name : str
        That of its folder; of a run in memory algorithm, split and seed.
    group : str
        The name of its sweep; "" for a run by itself.
    id : str
        Sixteen digits, the same whenever the run is resumed, and of no other run.
    rounds_done : int
        Rounds that stand in its folder already.
    config : dict of str to object
        What config.json holds: algorithm, model, split, settings.
    place : str
        Where the user wants it, as the tracker understands that; "" for its usual place.
    """

    name: str
    group: str
    id: str
    rounds_done: int
    config: dict[str, Any]
    place: str = ""


@dataclass(frozen=True)
class PlacedLog:
    """A log that says where it writes, which the command then tells its user.

    Parameters
    ----------
    log : callable
        log(round, metrics).
    place : str
        A folder, an address, or the name of what it writes to.
    command : str
        What shows it; "" where there is no command.

    Examples
    --------
    >>> placed = PlacedLog(lambda round, metrics: print(round), place="my/notes.txt")
    >>> placed(1, {})
    1
    """

    log: Log
    place: str
    command: str = ""

    def __call__(self, round: int, metrics: Mapping[str, Any]) -> None:
        self.log(round, metrics)


@dataclass(frozen=True)
class TrackedPlace:
    """Where a tracker has followed a run to.

    Parameters
    ----------
    tracker : str
        Its name.
    place, command : str
        As its `PlacedLog` says them; "" where it does not.
    """

    tracker: str
    place: str
    command: str


# An error that ends the run goes through the context.
Tracker = Callable[[TrackedRun], AbstractContextManager[Log]]


def select_numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics that are one number.

    Parameters
    ----------
    metrics : mapping of str to object
        Of a round.

    Examples
    --------
    >>> select_numbers({"round": 3, "test_accuracy": 0.5, "party_test_accuracy": [0.4]})
    {'test_accuracy': 0.5}
    """
    numbers = {}
    for name, value in metrics.items():
        if isinstance(value, int | float) and name != "round":
            numbers[name] = float(value)
    return numbers


def select_lists(metrics: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the metrics that have a number for each party, without parties that have none.

    Parameters
    ----------
    metrics : mapping of str to object
        Of a round.

    Examples
    --------
    >>> select_lists({"test_accuracy": 0.5, "party_test_accuracy": [0.4, None]})
    {'party_test_accuracy': [0.4]}
    """
    lists = {}
    for name, value in metrics.items():
        known = [one for one in value if one is not None] if isinstance(value, list) else []
        if known:
            lists[name] = known
    return lists
