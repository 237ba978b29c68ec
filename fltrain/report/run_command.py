"""The command that trains a run again, from its configuration."""

from collections.abc import Mapping
from typing import Any

from niidpart.report.make_command import join_command, name_place, write_flag
from niidpart.splits.recipe import JSON

from ..libraries import AND, list_models
from ..settings import SETTINGS

_FROM_EXECUTION = ("engine", "threads", "workers")  # on which the last bits depend


def write_run_command(config: JSON, split_file: str, out: str) -> str:
    """Return `fltrain run ...` with all that is not the default written out.

    A preset's values stand in the settings, so it is not named. The engine is the one that the run
    had, so that it comes out byte for byte on a machine like its own. Of paths of a user's own the
    last part is told.
    """
    algorithm = config["algorithm"]
    weights = config.get("init_from", {})
    metrics = [name_place(name) for name in config.get("metrics", [])]
    words = ["fltrain", "run", split_file]
    words += _write_place("algorithm", algorithm["spec"])
    words += _write_all(algorithm["options"])
    words += _write_place("model", AND.join(map(name_place, list_models(config["model"]))))
    words += _write_place("init_from", weights.get("path"))
    words += _write_place("loss", config.get("loss"))
    words += write_flag("metrics", metrics)
    settings = _choose_settings(config["settings"])
    execution = config.get("execution", {})
    for name in _FROM_EXECUTION:
        value = execution.get(name)
        if value:
            settings[name] = value
    words += _write_all(settings)
    return join_command([*words, "--out", out])


def _write_place(name: str, place: str | None) -> list[str]:
    if not place:
        return []
    return write_flag(name, name_place(place))


def _choose_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not the default."""
    chosen = {}
    for name, value in settings.items():
        option = SETTINGS.get(name)
        default = value if option is None else option.default
        if isinstance(default, tuple):
            default = list(default)  # as JSON has it
        if value != default:
            chosen[name] = value
    return chosen


def _write_all(values: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in values.items():
        words += write_flag(name, value)
    return words
