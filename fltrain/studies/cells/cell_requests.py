"""Cells as requests: all that one asks for looked up, and told by a digest."""

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import niidpart
from niidpart.errors import UsageError
from niidpart.splits.recipe import JSON

from ...interface import Algorithm
from ...runs.initial_weights import read_initial_weights
from ...runs.objective import resolve_objective
from ...runs.own_files import digest_own_code, list_specs
from ...runs.requests import Request, resolve_request
from ..plans.expansion import TUNED, WINNER, AskedCell
from ..plans.plan_checks import expand_paths
from ..plans.searching import part_point
from ..plans.tuning_words import PARTIES
from .cell import StudyCell, restore_lists

# Settings on which no result depends, so that a cell is the same with others.
_WRITTEN = ("checkpoint_every", "checkpoint_share", "keep")
_HARMLESS = (*_WRITTEN, "device", "threads", "workers", "memory")
# What came after the first studies, and the value that changes nothing: a setting (`lr`), or an
# option of an algorithm (`fedprox.mu`). At that value no digest has it, and cells keep their names.
_LATER: Mapping[str, Any] = {
    "internals": False,
    "validation_only": False,
    "drift": "none",
    "calibrate": 0,
    "calibrate_epochs": 10,
    "compress": None,
    "compress_by": "model",
    "error_feedback": True,
    "topk_share": 0.01,
    "qsgd_levels": 16,
    "models_by": None,
    "ditto.weights": "examples",
    "fedbn.weights": "examples",
    "feddyn.alphas": "equal",
    "fedprox.weights": "examples",
    "ifca.dealt_rounds": 0,
    "ifca.redrawn": "all",
    "scaffold.first_control": "zero",
}


@dataclass(frozen=True)
class ResolvedCell:
    """A cell, and its request: names looked up, a preset's values in their places.

    metric: by which a run of a search is judged; "" for other cells. place: its line in the plan
    and what it is, for errors.
    """

    cell: StudyCell
    request: Request
    metric: str = ""
    place: str = ""

    def as_winner(self) -> StudyCell:
        """Return the cell in the row of a winner that is not known yet."""
        where = {group: at | {TUNED: WINNER} for group, at in self.cell.where.items()}
        return replace(self.cell, where=where)


def restore_request(
    cell: StudyCell,
    split: niidpart.FederatedSplit,
    settings: Mapping[str, Any],
) -> Request:
    """Return the request of a cell.

    settings: those that it is to be trained with. UsageError where it would be trained as another
    than its name says.
    """
    asked = cell.asked
    request = look_up(
        split=split,
        algorithm=asked["algorithm"],
        options=restore_lists(asked["options"]),
        words=asked["words"],
        settings=settings,
    )
    if digest_request(request) != cell.digest:
        raise UsageError(
            f"{cell.name} would not be what its name says: a file of your own that it names, its "
            "initial weights, or a default of fltrain has changed since the plan was read; put it "
            "back, or give the plan again (fltrain study PLAN.toml --out STUDY)"
        )
    return request


def look_up(
    split: niidpart.FederatedSplit,
    algorithm: Algorithm | str,
    options: Mapping[str, Any],
    words: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Request:
    words = expand_paths(words)
    is_partial = bool(words.get("init_from_partial", False))
    return resolve_request(
        split,
        algorithm=algorithm,
        options=options,
        model=words.get("model"),
        preset=words.get("preset"),
        data_root=words.get("data_root"),
        settings=settings,
        objective=resolve_objective(words.get("loss"), words.get("metrics") or ()),
        weights=read_initial_weights(words.get("init_from"), is_partial),
    )


def resolve_cell(one: AskedCell, split: niidpart.FederatedSplit) -> ResolvedCell:
    words = one.words
    request = look_up(
        split=split,
        algorithm=one.algorithm,
        options=one.options,
        words=words,
        settings=one.settings,
    )
    asked = {
        "algorithm": request.algorithm.spec,
        "options": request.algorithm.options,
        "words": dict(words),
        "settings": dict(one.settings),
    }
    where = {key: value for key, value in one.where.items() if key != "group"}
    cell = StudyCell(
        digest=digest_request(request),
        split=split.digest,
        asked=json.loads(json.dumps(asked)),
        where={} if one.is_of_search else {one.group: json.loads(json.dumps(where))},
        rounds=request.settings.rounds,
    )
    return ResolvedCell(cell, request)


def name_metric(metric: str, request: Request) -> str:
    """Return by which metric a run of a search is judged; of PARTIES its own.

    Of the models that parties use: fine-tuned ones, else their own, else those served.
    """
    if metric != PARTIES:
        return metric
    at_home = "party_val_accuracy_mean"
    if request.settings.finetune:
        return f"finetuned_{at_home}"
    return at_home if request.algorithm.personal is None else f"personal_{at_home}"


def lay_over_cell(
    cell: StudyCell,
    values: Mapping[str, Any],
    split: niidpart.FederatedSplit,
) -> StudyCell:
    """Return a cell with the values of a winner in place of its own. split: its own."""
    asked = lay_over_asked(cell, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run says them
        request = look_up(
            split=split,
            algorithm=asked["algorithm"],
            options=restore_lists(asked["options"]),
            words=asked["words"],
            settings=restore_lists(asked["settings"]),
        )
    rounds = request.settings.rounds
    return replace(cell, digest=digest_request(request), asked=asked, rounds=rounds)


def lay_over_asked(cell: StudyCell, values: Mapping[str, Any]) -> JSON:
    """Return what a cell asks for with the values of a winner in place of its own."""
    options, settings = part_point(cell.asked["algorithm"], values)
    return cell.asked | {
        "options": cell.asked["options"] | options,
        "settings": cell.asked["settings"] | settings,
    }


def digest_request(request: Request) -> str:
    """Return the digest of all on which a result depends, as far as it was asked for."""
    settings = _leave_out_later(asdict(request.settings))
    kept = {key: settings[key] for key in settings if key not in _HARMLESS}
    spec = request.algorithm.spec
    objective = request.objective.describe()
    asked = {
        "split": request.split.digest,
        "algorithm": spec,
        "options": _leave_out_later(request.algorithm.options, f"{spec}."),
        "model": request.model,
        "settings": kept | {"init_seed": request.settings.model_seed},
        "objective": objective,
        "weights": {} if request.weights is None else request.weights.describe(),
    }
    named = {"algorithm": {"spec": spec}, "model": request.model or ""}
    code = digest_own_code(list_specs(named | objective))
    return hashlib.sha256(json.dumps([asked, code], sort_keys=True).encode()).hexdigest()


def _leave_out_later(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return values without those that came later and change nothing."""
    kept = {}
    for key, value in values.items():
        name = prefix + key
        if name not in _LATER or value != _LATER[name]:
            kept[key] = value
    return kept
