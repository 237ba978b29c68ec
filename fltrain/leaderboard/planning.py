"""The plan of an entry: a task's settings and splits, and an entrant's algorithms."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from niidpart.errors import UsageError

from ..algorithms import ALGORITHMS
from ..libraries import is_own_code
from .task import SEEDS, LeaderboardTask

BASELINE = "fedavg"
# Rows that each task has, or nothing is said of who is ahead: what parties reach alone, what one
# party with all data would, FedAvg, the same fine-tuned at each party, and the usual correction.
MANDATORY = ("solo", "centralised", BASELINE, "fedavg-ft", "fedprox")
KEPT = 5  # rounds between checkpoints that stay: a replay trains at most so many rounds anew
TRIED = 8  # settings that each algorithm of the tuned division tries
# What the tuned division searches: what all algorithms share. More is an algorithm's own `tune`.
SEARCHED = {"lr": {"log-uniform": [0.01, 1.0]}}
_ENTRANTS_WORDS = ("name", "tune")  # of an algorithm; a label could take another one's name


def make_entry_plan(
    task: LeaderboardTask,
    algorithms: Sequence[Mapping[str, Any]],
    *,
    is_tuned: bool = False,
    data_root: str | None = None,
) -> dict[str, Any]:
    """Return the plan of an entry, as `fltrain.study` takes it.

    UsageError for an algorithm that there is not, and for one with options of its own: in the
    default division they have their defaults, in the tuned one they are searched.
    """
    for algorithm in algorithms:
        _require_plain(algorithm, is_tuned=is_tuned)
    split = dict(task.split)
    if data_root is not None:
        split["data_root"] = data_root
    fixed = dict(task.fixed)
    fixed["keep"] = f"every:{KEPT}"
    fixed["checkpoint_every"] = KEPT
    plan: dict[str, Any] = {
        "name": task.title,
        "trials": SEEDS,
        "algorithms": [dict(algorithm) for algorithm in algorithms],
        "fixed": fixed,
        "splits": [split],
    }
    if is_tuned:
        plan["tuning"] = {"method": "sobol", "trials": TRIED, "space": SEARCHED}
    return plan


def _require_plain(algorithm: Mapping[str, Any], *, is_tuned: bool) -> None:
    """Raise UsageError unless an algorithm is known, and its entrant chose no value by hand."""
    name = algorithm.get("name")
    if not isinstance(name, str):
        raise UsageError(f"an algorithm of the plan is {dict(algorithm)!r:.60}, without a name")
    if not is_own_code(name):
        ALGORITHMS.module(name)  # an unknown name is told the nearest; one's own code is not run
    chosen = [word for word in algorithm if word not in _ENTRANTS_WORDS]
    if chosen:
        raise UsageError(
            f"{name} has {', '.join(chosen)}, chosen by hand; the default division has the "
            "defaults of an algorithm, the tuned one searches: tune = {mu = [0.01, 0.1]}"
        )
    if "tune" in algorithm and not is_tuned:
        raise UsageError(f"{name} is to be tuned; --tuned is that division")


def read_algorithm(text: str) -> dict[str, Any]:
    """Return `fedprox` or `fedprox:{mu = [0.1, 1]}` as the words of an algorithm of a plan.

    What stands behind the name is what the tuned division searches. UsageError for another text.
    """
    name, _, searched = text.partition(":{")
    if not searched:
        return {"name": name}
    try:
        words = tomllib.loads(f"tune = {{{searched}")
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{text!r} is no algorithm with what it searches ({error}); write it as "
            "fedprox:{mu = [0.1, 1.0]}"
        ) from error
    return {"name": name, "tune": words["tune"]}
