"""Which party has which model, where `--model cnn+mlp` asks for several of different shapes."""

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean
from niidpart.splits.recipe import JSON
from niidpart.splits.split import FederatedSplit

from ..disk.plain_folder import RunError
from ..interface import Algorithm
from ..libraries import AND, list_models
from ..settings import Settings
from .configuration import PARTY_MODELS
from .initial_weights import InitialWeights


def list_unlike(model: object) -> list[str]:
    """Return the names of unlike models, each as often as it was given; [] for a single one."""
    names = list_models(model) if isinstance(model, str) else []
    return names if len(names) > 1 else []


def require_no_mean(
    model: object,
    algorithm: Algorithm,
    settings: Settings,
    weights: InitialWeights | None,
) -> None:
    """Raise UsageError where unlike models would be averaged, or given the weights of one."""
    names = list_unlike(model)
    if not names:
        return
    asked = f"model {AND.join(names)} gives parties models of {len(set(names))} shapes"
    if not algorithm.unlike_models:
        raise UsageError(
            f"{asked}, and {algorithm.name} sends, averages or shares models, which must be of one "
            "shape; take fedproto or solo, or one model"
        )
    if settings.drift != "none":
        raise UsageError(
            f"{asked}, and drift compares what parties move with the mean of all; leave drift out"
        )
    if weights is not None:
        raise UsageError(
            f"{asked}, and init-from has the weights of one; leave it out, or load them in a "
            "function of your own (file.py:function)"
        )


def deal_models(split: FederatedSplit, n_models: int, settings: Settings) -> tuple[int, ...]:
    """Return for each party of a split the place of its model.

    Parties take turns, or the values that they have in a column of the split do, in ascending
    order. UsageError where the split has no such column.
    """
    column = settings.models_by
    if column is None:
        return tuple(party % n_models for party in range(split.n_parties))
    if column not in split.columns:
        known = ", ".join(split.columns) if split.columns else "none"
        hint = did_you_mean(column, split.columns) if split.columns else "leave --models-by out"
        raise UsageError(
            f"--models-by: the split has no column {column!r} (it has {known}); {hint}"
        )
    values = split.columns[column].tolist()
    place = {value: i % n_models for i, value in enumerate(sorted(set(values)))}
    return tuple(place[value] for value in values)


def describe_deal(model: str, split: FederatedSplit, settings: Settings) -> JSON:
    """Return what a configuration says of who has which model; {} where there is one."""
    names = list_unlike(model)
    return {PARTY_MODELS: list(deal_models(split, len(names), settings))} if names else {}


def require_same_deal(config: JSON, split: FederatedSplit, settings: Settings) -> None:
    """Raise RunError where parties would have other models than a configuration states."""
    if PARTY_MODELS not in config:
        return
    dealt = deal_models(split, len(list_models(config["model"])), settings)
    if list(dealt) != config[PARTY_MODELS]:
        raise RunError(
            f"the run was started with the models {config[PARTY_MODELS]} at its parties, and this "
            f"version deals {list(dealt)}; go on with the version that wrote it"
        )
