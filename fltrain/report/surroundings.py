"""What the runs of a page have in common: settings, the machine, and what they took."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niidpart.report.make_command import name_place
from niidpart.wording import count_noun

from ..libraries import AND, list_models
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
    chosen: list[tuple[str, str]] = []
    usual: list[tuple[str, str]] = []
    varied = []
    for name in _list_names(asked):
        if name == "split":
            continue
        words = name.replace("_", " ")
        values = [one.get(name) for one in asked]
        value, *others = _list_distinct(values)
        line = (words, _write_json(value))
        if others:
            varied.append(words)
        elif _is_default(name, value):
            usual.append(line)
        elif value not in _NOTHING:
            chosen.append(line)
    return SharedSettings(chosen, usual, varied)


def _list_names(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names that some mapping has, in the order in which they come."""
    names: dict[str, None] = {}
    for one in mappings:
        names |= dict.fromkeys(one)
    return list(names)


def _is_default(name: str, value: str) -> bool:
    """Return whether a value, as JSON, is what a setting has unless it is asked for."""
    if name not in SETTINGS or value in _NOTHING:
        return False
    default = json.dumps(SETTINGS[name].default)
    return value == default


def list_environments(runs: Sequence[PageRun]) -> list[tuple[str, str]]:
    """Return on what the runs ran; where they differ, each value with its number of runs."""
    columns: dict[str, list[Any]] = {}
    environments = [run.environment for run in runs]
    for name in _list_names(environments):
        if name in _HIDDEN:
            continue
        words = _WORDS.get(name, name)
        columns[words] = [environment.get(name) for environment in environments]
    executions = [run.config.get("execution", {}) for run in runs]
    columns["engine"] = [execution.get("engine") for execution in executions]
    lines = []
    for words, values in columns.items():
        told = _count_values(values)
        if told:
            lines.append((words, told))
    return lines


def sum_costs(runs: Sequence[PageRun]) -> Costs:
    """Return what runs took together."""
    n_rounds = 0
    n_bytes = 0
    known = []
    for run in runs:
        n_rounds += len(run.history)
        for one in run.history:
            n_bytes += one["bytes_down"]
            n_bytes += one["bytes_up"]
            if one.get("seconds") is not None:
                known.append(one["seconds"])
    is_known = len(known) == n_rounds
    return Costs(
        n_runs=len(runs),
        n_rounds=n_rounds,
        n_bytes=n_bytes,
        seconds=sum(known) if is_known else None,
    )


def _count_values(values: Sequence[Any]) -> str:
    if not values:
        return ""
    texts = [json.dumps(value) for value in values]
    counted = Counter(texts).most_common()
    if len(counted) == 1:
        return "" if texts[0] in _NOTHING else _write_json(texts[0])
    said = []
    for text, n in counted[:_SHOWN]:
        words = _write_json(text)
        said.append(f"{words} ({count_noun(n, 'run')})")
    n_more = len(counted) - _SHOWN
    if n_more > 0:
        said.append(f"{n_more} more values")
    return "; ".join(said)


def _list_distinct(values: Sequence[Any]) -> list[str]:
    texts = [json.dumps(value, default=str) for value in values]
    return list(dict.fromkeys(texts))


def _write_json(text: str) -> str:
    return _write(json.loads(text))


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, str):
        return AND.join(map(name_place, list_models(value)))
    return str(value)
