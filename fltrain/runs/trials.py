"""Runs that differ in seeds alone are trials of one setting; what tells the settings apart."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import Parameter
from typing import Any

from niidpart.registry import UnimportedRegistry
from niidpart.splits.recipe import JSON

from ..common import SEEDS
from ..libraries import AND, is_own_code, list_models
from ..settings import Settings
from .grid import write_value
from .own_files import shorten_digest

PARAMETERS = "parameters"  # of the model; folders of earlier versions do not count them
SPLIT_SEED = "split_seed"  # of the split, where several draws of one recipe are pooled
MODEL_CODE = "model code"  # of one's own; earlier folders do not state its digest
# Settings that change no result beyond rounding.
_WRITTEN = {"checkpoint_every", "checkpoint_share", "keep"}
_HARMLESS = _WRITTEN | {"device", "threads", "engine", "workers", "memory"}
_OWN_FILE = re.compile(r"^.*[/\\]([^/\\]+\.py:\w+)$")  # a file of one's own: its folder is left out
_ALL_SEEDS = (*SEEDS, SPLIT_SEED)
_DEFAULTS: JSON = json.loads(json.dumps(asdict(Settings())))  # by JSON, where a tuple is a list
_OFF = {key: value for key, value in _DEFAULTS.items() if not value and key not in SEEDS}
_ALGORITHMS = UnimportedRegistry("fltrain.algorithms", "algorithm")  # without torch
_SHOWN = 32  # letters of a value in a label


@dataclass(frozen=True)
class Trials:
    """The runs of one setting.

    Parameters
    ----------
    label : str
        The algorithm, and what tells this setting from the others: "fedprox mu=0.1".
    runs : tuple of str
        Their names, in the order in which they were given.
    repeats : tuple of str
        Runs of the setting with the seeds of one of `runs`: the same trial again, which counts
        once.
    """

    label: str
    runs: tuple[str, ...]
    repeats: tuple[str, ...] = ()


def group_trials(configs: Mapping[str, JSON], each: bool = False) -> list[Trials]:
    """Return the settings in the order of their first runs.

    configs: config.json by name of run. each: a seed makes a setting too.
    """
    groups: dict[str, list[str]] = {}
    left_out: tuple[str, ...] = () if each else _ALL_SEEDS
    if not all(PARAMETERS in config for config in configs.values()):
        left_out += (PARAMETERS,)  # an older folder does not tell, which makes it no other setting
    if not all(_has_model_code(config) for config in configs.values()):
        left_out += (MODEL_CODE,)
    for name, config in configs.items():
        key = name if each else json.dumps(_describe(config, left_out), sort_keys=True)
        groups.setdefault(key, []).append(name)
    described = [_describe(configs[runs[0]], left_out) for runs in groups.values()]
    labels = _label_settings(described)
    trials = []
    for label, names in zip(labels, groups.values(), strict=True):
        runs, repeats = _part_repeats(names, configs)
        trials.append(Trials(label, runs, repeats))
    return trials


def _part_repeats(
    names: Sequence[str], configs: Mapping[str, JSON]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the first run of each pair of seeds, and the others."""
    first: dict[str, str] = {}
    for name in names:
        values = list_comparable(configs[name])
        seeds = json.dumps([values.get(key) for key in _ALL_SEEDS])
        first.setdefault(seeds, name)
    runs = tuple(first.values())
    return runs, tuple(name for name in names if name not in runs)


def list_comparable(config: JSON) -> JSON:
    """Return what a result depends on besides the algorithm.

    parameters: of the model that was trained, which the algorithm may have changed. A setting that
    a folder lacks, since it is older, has its default; of its parameters it says nothing.
    """
    values = {"split": config["split"][:12], "model": config["model"]}
    if "init_from" in config:
        values["init_from"] = config["init_from"].get("sha256", "")[:12]
    if "loss" in config:
        values["loss"] = config["loss"] or "a function"
    # The same name may have had another text each time.
    code = shorten_digest(config, config["model"])
    if code:
        values[MODEL_CODE] = code
    if PARAMETERS in config:
        values[PARAMETERS] = config[PARAMETERS]
    settings = _DEFAULTS | config["settings"]
    return values | {key: value for key, value in settings.items() if key not in _HARMLESS}


def _has_model_code(config: JSON) -> bool:
    """Return whether a folder tells the text of its model: all do where that is not one's own."""
    models = filter(is_own_code, list_models(config["model"]))
    return all(shorten_digest(config, model) for model in models)


def _describe(config: JSON, left_out: Sequence[str]) -> JSON:
    """Return all that makes a setting: the algorithm, its options, and the rest."""
    algorithm = config["algorithm"]
    rest = list_comparable(config)
    complete = _list_defaults(algorithm) | algorithm.get("options", {})
    options = {f"option {key}": value for key, value in complete.items()}
    of_algorithm = {"algorithm": algorithm["name"], "spec": algorithm.get("spec"), **options}
    return of_algorithm | {key: value for key, value in rest.items() if key not in left_out}


def _list_defaults(algorithm: JSON) -> JSON:
    """Return the defaults of an algorithm's options, for a folder from before one of them.

    Of ours alone: an algorithm of one's own is code that a folder names, and nothing of it is run.
    """
    name = algorithm.get("spec")
    if name not in _ALGORITHMS.names():
        return {}
    options = _ALGORITHMS.options(_ALGORITHMS.find(name))
    defaults = {key: option.default for key, option in options.items()}
    known = {key: value for key, value in defaults.items() if value is not Parameter.empty}
    by_json: JSON = json.loads(json.dumps(known))
    return by_json


def _label_settings(settings: Sequence[JSON]) -> list[str]:
    """Return the algorithm of each, and the values by which it differs from another one."""
    labels = []
    for setting in settings:
        alike = [other for other in settings if other["algorithm"] == setting["algorithm"]]
        words = [setting["algorithm"]]
        for key, value in setting.items():
            # An option is told among runs of its algorithm; others need not have it.
            among = alike if key.startswith("option ") or key == "spec" else settings
            is_told = key not in ("algorithm", PARAMETERS) and not _is_left_off(key, value)
            if is_told and _is_varied(key, among):
                words.append(f"{key.removeprefix('option ')}={_shorten(value)}")
        labels.append(" ".join(words))
    return _number_equal(labels)


def _is_left_off(key: str, value: Any) -> bool:
    """Return whether a setting is nothing by default, and is that: finetune=0 is what all have."""
    return key in _OFF and value == _OFF[key]


def _is_varied(key: str, settings: Sequence[JSON]) -> bool:
    return len({json.dumps(setting.get(key)) for setting in settings}) > 1


def _shorten(value: Any) -> str:
    names = list_models(write_value(value))  # what names no models is one name
    text = AND.join(_OWN_FILE.sub(r"\1", name) for name in names)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _number_equal(labels: Sequence[str]) -> list[str]:
    """Return the labels, equal ones with #2, #3, ... (long values may begin alike)."""
    seen: dict[str, int] = {}
    numbered = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        numbered.append(label if seen[label] == 1 else f"{label} #{seen[label]}")
    return numbered
