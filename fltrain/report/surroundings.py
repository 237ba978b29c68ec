"""What the runs of a page have in common: settings, the machine, and what they took."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from niidpart.report.make_command import name_place
from niidpart.wording import count_noun

from ..runs.trials import list_comparable
from ..settings import SETTINGS
from .page_runs import PageRun

_NOTHING = ("null", "[]")  # as JSON
_SHOWN = 4  # values of one word that a line names
_WORDS = {"niidpart": "niidpart and fltrain", "cuda": "CUDA", "cpu": "processor"}
_HIDDEN = ("run", "digest")  # of environment.json: a number of each run, and its own digest


@dataclass(frozen=True)
class SharedSettings:
    """What all runs were asked for.

    chosen: what somebody chose. usual: what has its default. varied: names of what differs.
    """

    chosen: Sequence[tuple[str, str]]
    usual: Sequence[tuple[str, str]]
    varied: Sequence[str]


@dataclass(frozen=True)
class Costs:
    """What runs took together. seconds: None where some run's times are not known."""

    n_runs: int
    n_rounds: int
    n_bytes: int
    seconds: float | None


def list_shared_settings(runs: Sequence[PageRun]) -> SharedSettings:
    """Return what all runs were asked for, and what differs between them."""
    asked = [list_comparable(run.config) for run in runs]
    names = dict.fromkeys(name for one in asked for name in one if name != "split")
    chosen: list[tuple[str, str]] = []
    usual: list[tuple[str, str]] = []
    varied = []
    for name in names:
        words = name.replace("_", " ")
        value, *others = _list_distinct([one.get(name) for one in asked])
        line = (words, _write(json.loads(value)))
        if others:
            varied.append(words)
        elif _is_default(name, value):
            usual.append(line)
        elif value not in _NOTHING:
            chosen.append(line)
    return SharedSettings(chosen, usual, varied)


def _is_default(name: str, value: str) -> bool:
    """Return whether a value, as JSON, is what a setting has unless it is asked for."""
    if name not in SETTINGS or value in _NOTHING:
        return False
    default = json.dumps(SETTINGS[name].default)
    return value == default


def list_environments(runs: Sequence[PageRun]) -> list[tuple[str, str]]:
    """Return on what the runs ran; where they differ, each value with its number of runs."""
    names = dict.fromkeys(name for run in runs for name in run.environment)
    lines = []
    for name in names:
        values = [run.environment.get(name) for run in runs]
        if name not in _HIDDEN:
            lines.append((_WORDS.get(name, name), _count_values(values)))
    executions = [run.config.get("execution", {}) for run in runs]
    engines = [execution.get("engine") for execution in executions]
    lines.append(("engine", _count_values(engines)))
    return [line for line in lines if line[1]]


def sum_costs(runs: Sequence[PageRun]) -> Costs:
    """Return what runs took together."""
    rounds = [one for run in runs for one in run.history]
    seconds = [one.get("seconds") for one in rounds]
    known = [value for value in seconds if value is not None]
    is_known = len(known) == len(rounds)
    n_bytes = 0
    for one in rounds:
        n_bytes += one["bytes_down"]
        n_bytes += one["bytes_up"]
    return Costs(
        n_runs=len(runs),
        n_rounds=len(rounds),
        n_bytes=n_bytes,
        seconds=sum(known) if is_known else None,
    )


def _count_values(values: Sequence[Any]) -> str:
    if not values:
        return ""
    texts = [json.dumps(value) for value in values]
    (text, _), *others = counted = Counter(texts).most_common()
    if not others:
        return "" if text in _NOTHING else _write(json.loads(text))
    said = []
    for text, n in counted[:_SHOWN]:
        words = _write(json.loads(text))
        said.append(f"{words} ({count_noun(n, 'run')})")
    if len(counted) > _SHOWN:
        said.append(f"{len(counted) - _SHOWN} more values")
    return "; ".join(said)


def _list_distinct(values: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(json.dumps(value, default=str) for value in values))


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return name_place(value) if isinstance(value, str) else str(value)
