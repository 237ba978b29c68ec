"""Runs next to each other: what they reached, and whether they may be compared."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ..common import SEEDS
from .folder import RunFolder
from .stopping import is_finished
from .trials import (
    MODEL_CODE,
    PARAMETERS,
    Trials,
    group_trials,
    list_comparable,
    name_algorithm,
)

# What a summary has a mean of over trials; docs/training.md says what each is.
MEASURED = (
    "final",
    "best",
    "party_mean",
    "party_worst",
    "personal",
    "new_mean",
    "new_worst",
    "new_tuned_mean",
    "bytes",
)
# Whose models parties use -> how the names of their metrics begin.
_PREFIXES = {"fine-tuned": "finetuned_", "own": "personal_", "served": ""}
_LONGEST = 40  # letters of a value that a difference shows
_NAMED = 3  # runs, and values, that a difference names


def summarise(name: str, folder: RunFolder, metrics: Sequence[str] = ()) -> dict[str, Any]:
    """Return what a run has reached; docs/training.md lists the fields.

    What is not known, such as an accuracy before the first evaluation, is None. metrics: names as
    a history has them, whose last values are told besides.
    """
    config, history = folder.config, folder.history
    scored = [m for m in history if m.get("test_accuracy") is not None]
    accuracies = _collect(scored, "test_accuracy")
    best = max(accuracies, default=None)
    used = _find_party_models(history)
    prefix = _PREFIXES.get(used or "", "")
    asked = config["settings"].get("rounds")
    summary = {
        "run": name,
        "algorithm": name_algorithm(config["algorithm"]),
        "rounds": len(history),
        "rounds_asked": asked,
        "finished": is_finished(config, history),
        "final": accuracies[-1] if accuracies else None,
        "best": best,
        "best_round": scored[accuracies.index(best)]["round"] if accuracies else None,
        "party_mean": _find_last(history, f"{prefix}party_test_accuracy_mean"),
        "party_worst": _find_last(history, f"{prefix}party_test_accuracy_worst"),
        "new_mean": _find_last(history, "new_party_test_accuracy_mean"),
        "new_worst": _find_last(history, "new_party_test_accuracy_worst"),
        "new_tuned_mean": _find_last(history, "finetuned_new_party_test_accuracy_mean"),
        "personal": _find_last(history, "personal_party_test_accuracy_mean"),
        "party_models": used,
        "bytes": sum(m["bytes_down"] + m["bytes_up"] for m in history),
    }
    if metrics:
        summary["metrics"] = {metric: _find_last(history, metric) for metric in metrics}
    return summary


def _find_party_models(history: Sequence[Mapping[str, Any]]) -> str | None:
    """Return whose models parties use at home; None where nothing is measured there.

    Those that they have trained further, else those of their own, else those served.
    """
    for used, prefix in _PREFIXES.items():
        if _find_last(history, f"{prefix}party_test_accuracy_mean") is not None:
            return used
    return None


def summarise_settings(
    folders: Mapping[str, RunFolder], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return what each setting has reached over its trials.

    `n` of them; for each of `MEASURED` its mean and sample standard deviation. None where a trial
    has no such value or is not finished, since a mean over different rounds says nothing; the
    deviation also where there is one trial. rows: `summarise` of each folder.
    """
    groups = group_trials({name: folder.config for name, folder in folders.items()})
    by_run = {row["run"]: row for row in rows}
    return [_summarise_trials(group, by_run) for group in groups]


def _summarise_trials(trials: Trials, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    members = [rows[name] for name in trials.runs]
    found: dict[str, Any] = {
        "setting": trials.label,
        "n": len(members),
        "runs": list(trials.runs),
        "repeats": list(trials.repeats),
        "rounds": max(row["rounds"] for row in members),
        "party_models": members[0]["party_models"],
        "unfinished": sum(not row["finished"] for row in members),
    }
    for key in MEASURED:
        values = [row[key] if row["finished"] else None for row in members]
        found[key] = _compute_mean(values)
    if "metrics" in members[0]:
        found["metrics"] = _average_metrics(members)
    return found


def _average_metrics(members: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Return the mean of each metric that was asked for besides, as those of `MEASURED` are."""
    averages = {}
    for metric in members[0]["metrics"]:
        values = [row["metrics"][metric] if row["finished"] else None for row in members]
        averages[metric] = _compute_mean(values)
    return averages


def _compute_mean(values: Sequence[float | None]) -> dict[str, float | None]:
    """Return mean and sample standard deviation; None where a value is missing, or there is one."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return {"mean": None, "std": None}
    deviation = statistics.stdev(known) if len(known) > 1 else None
    return {"mean": statistics.mean(known), "std": deviation}


def _collect(history: Sequence[Mapping[str, Any]], metric: str) -> list[Any]:
    return [metrics[metric] for metrics in history if metric in metrics]


def _find_last(history: Sequence[Mapping[str, Any]], metric: str) -> float | None:
    values = _collect(history, metric)
    return values[-1] if values else None


def list_differences(folders: Mapping[str, RunFolder]) -> list[str]:
    """Return what besides the algorithm differs and changes results, one line each.

    [] for a fair comparison. Seeds are no difference where all settings have the same ones.
    """
    configs = {name: folder.config for name, folder in folders.items()}
    values_of = {name: list_comparable(config) for name, config in configs.items()}
    keys = dict.fromkeys(key for values in values_of.values() for key in values)
    groups = group_trials(configs)
    lines = []
    for key in keys:
        if key in SEEDS and _has_equal_seeds(key, groups, values_of):
            continue
        runs: dict[str, list[str]] = {}
        for name, values in values_of.items():
            if key in (PARAMETERS, MODEL_CODE) and key not in values:
                continue  # of an older folder, which does not tell, or of no code of one's own
            runs.setdefault(str(values.get(key)), []).append(name)
        if len(runs) > 1:
            lines.append(_describe_difference(key, runs))
    return lines


def _has_equal_seeds(
    key: str, groups: Sequence[Trials], values_of: Mapping[str, Mapping[str, Any]]
) -> bool:
    seeds = [sorted(str(values_of[run].get(key)) for run in group.runs) for group in groups]
    return all(each == seeds[0] for each in seeds)


def _describe_difference(key: str, runs: Mapping[str, Sequence[str]]) -> str:
    """Return who has which value; what most have comes last, as "the others". runs: by value."""
    # Runs are compared by what stands out: the usual value need not be listed by names.
    *rare, (value, who) = sorted(runs.items(), key=lambda item: len(item[1]))
    said = [f"{_shorten(value)} in {_name_some(who)}" for value, who in rare[:_NAMED]]
    if len(rare) > _NAMED:
        said.append(f"{len(rare) - _NAMED} more values")
    others = "others" if len(who) > 1 else "other"
    return f"{key}: {'; '.join(said)}; {_shorten(value)} in the {others}"


def _name_some(names: Sequence[str]) -> str:
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


def _shorten(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
