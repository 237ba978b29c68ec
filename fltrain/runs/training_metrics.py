"""The metrics of a round's training: steps, loss, bytes, and the drift of the parties."""

import statistics
from collections.abc import Mapping

from niidpart.splits.recipe import JSON

from ..engine.drift import WHOLE, Drift
from ..engine.jobs import Cell
from ..engine.round import Trained
from ..interface import State
from .metrics import DRIFT_COSINE, DRIFT_NORM
from .traffic import count_bytes

DRIFT = "drift_"  # begins the names of its metrics


def measure_training(cell: Cell, before: State, trained: Trained, round: int) -> JSON:
    """Return the metrics of a round's training. before: the state that it began from."""
    metrics = {
        "round": round,
        "lr": cell.settings.lr_at(round),
        "jobs": len(trained.plan.party),
        "steps": trained.steps,
        "train_loss": trained.loss,
    }
    traffic = count_bytes(cell.algorithm, before, trained, cell.task)
    return metrics | traffic | _describe_drift(cell, trained.drift)


def can_drift(cell: Cell) -> bool:
    """Return whether the drift of the parties is asked for, and there are several of them."""
    return cell.settings.drift != "none" and not cell.algorithm.pooled


def sketch_drift(cell: Cell) -> JSON:
    """Return the metrics of a whole model's drift, with a number or a list as they have."""
    if not can_drift(cell):
        return {}
    sketch: JSON = {}
    for name in (DRIFT_NORM, DRIFT_COSINE):
        sketch |= {name: [], f"{name}_mean": 0.0}
    return sketch


def explain_no_drift(cell: Cell) -> str:
    """Return why a run has no such number of its drift, and what to do."""
    if cell.algorithm.pooled:
        return f"{cell.algorithm.name} trains as one party"
    if cell.settings.drift == "none":
        return "add --drift whole"
    return f"give {DRIFT_NORM}_mean or {DRIFT_COSINE}_mean"


def _describe_drift(cell: Cell, drift: Mapping[str, Mapping[int, Drift]]) -> JSON:
    """Return the drift of a round: of each party of the split, and the mean of those that trained.

    None for a party that did not train, and for a cosine that there is not. Of a layer there are
    the parties' values alone, under its name behind a dot. {} where drift was not measured.
    """
    metrics: JSON = {}
    for layer, of_layer in drift.items():
        end = f".{layer}" if layer != WHOLE else ""
        norms = {party: one.norm for party, one in of_layer.items()}
        cosines = {party: one.cosine for party, one in of_layer.items()}
        metrics[f"{DRIFT_NORM}{end}"] = _spread(cell, norms)
        metrics[f"{DRIFT_COSINE}{end}"] = _spread(cell, cosines)
        if layer == WHOLE:
            metrics |= _describe_means(norms, cosines)
    return metrics


def _describe_means(
    norms: Mapping[int, float], cosines: Mapping[int, float | None]
) -> dict[str, float | None]:
    known = [cosine for cosine in cosines.values() if cosine is not None]
    mean_cosine = statistics.fmean(known) if known else None
    return {
        f"{DRIFT_NORM}_mean": statistics.fmean(norms.values()),
        f"{DRIFT_COSINE}_mean": mean_cosine,
    }


def _spread(cell: Cell, values: Mapping[int, float | None]) -> list[float | None]:
    """Return the values in a list of all parties of the split."""
    trained = [values.get(party) for party in range(cell.data.n_parties)]
    return cell.data.spread(trained)
