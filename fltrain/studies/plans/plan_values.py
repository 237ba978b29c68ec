"""The values that words of a plan go through, each checked where it stands. Needs no torch."""

import typing
from collections.abc import Sequence
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import Option, UnimportedRegistry

from ... import presets
from ...libraries import TORCHVISION, list_models
from ...settings import SETTINGS, Settings

_MODELS = UnimportedRegistry("fltrain.models", "model", other_names=(f"{TORCHVISION}NAME",))
_METRICS = UnimportedRegistry("fltrain.metrics", "metric")
_MEASURED = ("accuracy", "loss")  # in any case, as the run itself says to whoever asks for them


def list_values(given: Any, option: Option | None) -> list[Any]:
    """Return the values of a word: a list's, or the one given.

    Where the option itself takes a list, a list of lists has several.
    """
    is_list = isinstance(given, list | tuple | range)
    takes_list = option is not None and _takes_list(option.annotation)
    if is_list and takes_list and not any(isinstance(one, list | tuple) for one in given):
        return [given]
    if is_list and not given:
        raise UsageError(f"an axis has no values: {given!r}; give one at least")
    return list(given) if is_list else [given]


def _takes_list(annotation: Any) -> bool:
    inner = [annotation, *typing.get_args(annotation)]
    return any(typing.get_origin(one) in (tuple, list) or one in (tuple, list) for one in inner)


def require_one_value(word: str, given: Any) -> None:
    """Raise UsageError for a list where one value is fixed."""
    if word != "metrics" and list_values(given, SETTINGS.get(word)) != [given]:
        raise UsageError(f"{word} is {given!r}; a list is an axis, which stands below [axes]")


def check_values(
    word: str, values: Sequence[Any], option: Option | None = None, who: str = ""
) -> None:
    """Raise UsageError for a value that a word cannot have, or has twice.

    option: of an algorithm, None for a setting or a word of a run. who: whose option it is.
    """
    for value in values:
        if word in SETTINGS:
            Settings.of({word: value})
        elif option is not None:
            option.check(f"{who}{word}", value)
        elif isinstance(value, str) or word == "metrics":
            _check_names(word, [value] if isinstance(value, str) else value)
    require_different(word, values)


def _check_names(word: str, names: Any) -> None:
    """Raise UsageError for the name of a model, a preset or a metric that there is not.

    Code of one's own is not looked at, and neither is what Python hands over.
    """
    for name in names if isinstance(names, list | tuple) else ():
        if word == "model" and isinstance(name, str):
            for one in list_models(name):
                if ":" not in one:
                    _MODELS.require_name(one)
            continue
        if not isinstance(name, str) or ":" in name:
            continue
        if word == "preset":
            presets.find(name)
        elif word == "metrics" and not name.startswith(_MEASURED):
            _METRICS.require_name(name)


def require_different(word: str, values: Sequence[Any]) -> None:
    """Raise UsageError where a word has a value twice."""
    for place, value in enumerate(values):
        if value in values[:place]:
            raise UsageError(f"{word} has the value {value!r} twice; give it once")
