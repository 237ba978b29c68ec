"""Whether the words of a plan are known, and tables where tables must be. Needs no torch."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from ...settings import SETTINGS
from .plan_text import PlanPath, PlanText

# Words of `fltrain.run` besides the settings.
_OF_THE_PLAN = ("name", "about", "trials", "algorithms")  # what stands there without a table
RUN_WORDS = ("model", "preset", "data_root", "metrics", "loss", "init_from", "init_from_partial")
_OWN_SEEDS = {"seed": "order", "init_seed": "init"}

_PATHS = ("data_root", "init_from")  # words of a run that name files or folders

PlanTable = Mapping[str, Any]


def require_words(
    table: PlanTable,
    known: Sequence[str],
    path: PlanPath,
    text: PlanText,
) -> None:
    for word in table:
        if word not in known:
            where = text.locate((*path, word))
            raise UsageError(f"{where}there is no word {word!r} here; {did_you_mean(word, known)}")


def require_setting(
    word: str,
    path: PlanPath,
    text: PlanText,
) -> None:
    """Raise UsageError where a word is neither a setting nor a word of a run."""
    if word in _OWN_SEEDS:
        kind = _OWN_SEEDS[word]
        raise UsageError(f"{text.locate(path)}{word} is said by [seeds]: {kind} = [0, 1]")
    known = [name for name in (*RUN_WORDS, *SETTINGS) if name not in _OWN_SEEDS]
    if word not in known:
        where = text.locate(path)
        if word in _OF_THE_PLAN:
            raise UsageError(
                f"{where}{word} is a word of the plan itself, and TOML counts it to the table that "
                "begins above it; write it at the top, before the first [table]"
            )
        raise UsageError(f"{where}there is no setting {word!r}; {did_you_mean(word, known)}")


def require_table(
    value: Any,
    path: PlanPath,
    text: PlanText,
) -> PlanTable:
    if not isinstance(value, Mapping):
        raise UsageError(f"{text.locate(path)}{path[-1]} is {value!r}; a table is needed")
    return value


def require_tables(
    value: Any,
    path: PlanPath,
    text: PlanText,
) -> Sequence[PlanTable]:
    if not isinstance(value, list | tuple):
        raise UsageError(f"{text.locate(path)}{path[-1]} is {value!r}; a list of tables is needed")
    return [require_table(one, (*path, place), text) for place, one in enumerate(value)]


def expand_paths(words: PlanTable) -> dict[str, Any]:
    """Return words of a run, `~` as the home folder of whoever reads them, as in a shell."""
    expanded = dict(words)
    for word in _PATHS:
        if isinstance(words.get(word), str):
            expanded[word] = os.path.expanduser(words[word])
    return expanded
