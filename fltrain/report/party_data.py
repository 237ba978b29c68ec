"""Accuracies of the parties for a page's scripts: at the last round, and at the best one."""

from collections.abc import Mapping, Sequence
from typing import Any

from niidpart.splits.recipe import JSON

from ..evidence.measures import AT_HOME, METRIC, MODEL_PREFIXES, find_party_models
from .curve_data import CurveRow
from .page_runs import PageRun

_WHOSE = {
    "fine-tuned": "models that parties have fine-tuned",
    "own": "parties' own models",
    "served": "the models that parties are served",
}
_PARTS = 10_000  # a share is written as a whole number of these
MOST_PARTIES = 120_000  # values of a page; of runs above that none are shown


def describe_parties(rows: Sequence[CurveRow], most: int = MOST_PARTIES) -> tuple[JSON, int]:
    """Return the parties' accuracies of each run, and how many runs the page has no room for."""
    found: list[JSON] = []
    n_values, left_out = 0, 0
    for number, row in enumerate(rows):
        for run in row.runs:
            told = _describe_run(run)
            if told is None:
                continue
            n_values += len(told["last"]["values"])
            n_values += len(told["best"]["values"])
            if n_values > most:
                left_out += 1
                continue
            named = {"row": number, "label": run.folder.name}
            found.append(named | told)
    return {"parts": _PARTS, "runs": found}, left_out


def _describe_run(run: PageRun) -> JSON | None:
    """Return the parties of a run at its last and its best round; None where none is measured."""
    # Lists are no numbers: whose models are measured is known by what describes them.
    used = find_party_models(run.history)
    if used is None:
        return None
    name = f"{MODEL_PREFIXES[used]}{AT_HOME}"
    measured = [one for one in run.history if _is_measured(one.get(name))]
    if not measured:
        return None
    best = max(measured, key=lambda one: _find_rank(one, name))
    return {
        "whose": _WHOSE[used],
        "split": run.config["split"][:12],
        "last": _describe_round(measured[-1], name),
        "best": _describe_round(best, name),
    }


def _is_measured(values: Sequence[float | None] | None) -> bool:
    return values is not None and any(value is not None for value in values)


def _find_rank(metrics: Mapping[str, Any], name: str) -> float:
    """Return by what the best round is chosen: the test accuracy, or the mean over the parties."""
    for metric in (METRIC, f"{name}_mean"):
        value = metrics.get(metric)
        if value is not None:
            return float(value)
    return float("-inf")


def _describe_round(metrics: Mapping[str, Any], name: str) -> JSON:
    values = [None if value is None else round(_PARTS * value) for value in metrics[name]]
    return {"round": metrics["round"], "values": values}
