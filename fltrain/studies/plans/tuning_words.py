"""What a plan says of tuning: `[tuning]`, and `tune` of an algorithm. Needs no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import Option, did_you_mean

from ...settings.stopping import find_better_sign
from .plan_checks import PlanTable, require_table, require_words
from .plan_text import PlanPath, PlanText
from .plan_values import check_values
from .search_points import METHODS, ListedWord, SearchedWord, SpannedWord

METRIC = "party_val_accuracy_weighted"
PARTIES = "parties"  # as a table calls it: of the models that parties use, which differ
_WORDS = ("method", "trials", "seed", "repeats", "metric", "space")
_KINDS = ("choice", "uniform", "log-uniform")
_OF_VALIDATION = "party_val_"  # in the name of each metric of validation parts
_NUMBERS = ("_mean", "_p10", "_worst", "_weighted")  # of those: one number, and no list or spread
_EXAMPLE = "lr = {log-uniform = [0.001, 1]}"


@dataclass(frozen=True)
class TuningPlan:
    """How each algorithm of a group is tuned.

    method: grid, random or sobol. trials: settings that each algorithm tries, None for those of
    its grid. seed: of the draws. repeats: runs of each setting, of which the mean counts. metric:
    of validation parts, or PARTIES. space: what all algorithms search, words and distributions.
    path: where it stands in the plan.
    """

    method: str
    trials: int | None
    seed: int
    repeats: int
    metric: str
    space: PlanTable
    path: PlanPath


def read_tuning(
    value: Any,
    path: PlanPath,
    text: PlanText,
) -> TuningPlan:
    """Return what the table `[tuning]` says.

    UsageError for a word that there is not, and a metric that is not of validation parts.
    """
    table = require_table(value, path, text)
    require_words(table, _WORDS, path, text)
    method = table.get("method")
    if method not in METHODS:
        where = text.locate((*path, "method"))
        hint = did_you_mean(str(method), METHODS)
        if method is None:
            known = ", ".join(METHODS)
            raise UsageError(f"{where}[tuning] has no method; say one of: {known}")
        raise UsageError(f"{where}[tuning] needs a method, and {method!r} is none; {hint}")
    trials = _read_count(
        table=table,
        word="trials",
        default=None,
        path=path,
        text=text,
    )
    if trials is None and method != "grid":
        raise UsageError(
            f"{text.locate(path)}[tuning] needs trials, the number of settings that each "
            "algorithm tries, such as trials = 16"
        )
    seed = table.get("seed", 0)
    if type(seed) is not int or seed < 0:
        where = text.locate((*path, "seed"))
        raise UsageError(f"{where}seed is {seed!r}; it must be a whole number from 0 on")
    return TuningPlan(
        method=method,
        trials=trials,
        seed=seed,
        repeats=_read_count(
            table=table,
            word="repeats",
            default=1,
            path=path,
            text=text,
        )
        or 1,
        metric=_read_metric(table.get("metric", METRIC), (*path, "metric"), text),
        space=require_table(table.get("space", {}), (*path, "space"), text),
        path=path,
    )


def _read_count(
    table: PlanTable,
    word: str,
    default: int | None,
    path: PlanPath,
    text: PlanText,
) -> int | None:
    value = table.get(word, default)
    if value is not None and (type(value) is not int or value < 1):
        where = text.locate((*path, word))
        raise UsageError(f"{where}{word} is {value!r}; it must be a whole number, at least 1")
    return value


def _read_metric(
    metric: Any,
    path: PlanPath,
    text: PlanText,
) -> str:
    """Return the metric, which is a number, of validation parts, and better large or small."""
    where = text.locate(path)
    name = str(metric)
    if name == PARTIES:
        return name
    if _OF_VALIDATION not in name:
        raise UsageError(
            f"{where}metric is {metric!r}; tuning is on validation parts alone, so a metric of "
            f"those is needed, such as {METRIC}, or {PARTIES!r}"
        )
    if not name.endswith(_NUMBERS):
        first = name.removesuffix("_std").removesuffix("_gini")
        raise UsageError(
            f"{where}metric is {metric!r}, which is no single number that can win; "
            f"give {first}_weighted or {first}_mean"
        )
    if not find_better_sign(name):
        raise UsageError(f"{where}nobody says whether more or less of {name} is better")
    return name


def read_space(
    tables: Mapping[str, tuple[Any, PlanPath]],
    find_option: Callable[[str, PlanPath], Option | None],
    text: PlanText,
) -> list[SearchedWord]:
    """Return the words that one algorithm searches.

    tables: what the plan says of each word, and where. find_option: what a word means to the
    algorithm; UsageError for one that means nothing.
    """
    space = []
    for word, (given, path) in tables.items():
        option = find_option(word, path)
        if option is None:
            raise UsageError(
                f"{text.locate(path)}{word} cannot be searched; options of the algorithm and "
                "settings can: give it in [axes], and each value is tuned by itself"
            )
        space.append(
            _read_word(
                word=word,
                given=given,
                option=option,
                path=path,
                text=text,
            )
        )
    return space


def _read_word(
    word: str,
    given: Any,
    option: Option,
    path: PlanPath,
    text: PlanText,
) -> SearchedWord:
    """Return a word with its distribution; a list alone is a choice."""
    where = text.locate(path)
    table = given if isinstance(given, Mapping) else {"choice": given}
    kind = next(iter(table), "")
    if len(table) != 1 or kind not in _KINDS:
        hint = did_you_mean(str(kind), _KINDS)
        raise UsageError(
            f"{where}{word} is {given!r}; one distribution is needed, such as {_EXAMPLE}; {hint}"
        )
    values = table[kind]
    if kind == "choice":
        if not isinstance(values, list | tuple) or not len(values):
            raise UsageError(f"{where}{word} is {given!r}; a list is needed, or {_EXAMPLE}")
        with text.locate_errors(path):
            check_values(word, values, option)
        return ListedWord(word, list(values))
    return _read_ends(
        word=word,
        kind=kind,
        values=values,
        option=option,
        where=where,
    )


def _read_ends(
    word: str,
    kind: str,
    values: Any,
    option: Option,
    where: str,
) -> SpannedWord:
    """Return a word that lies between two numbers."""
    is_pair = isinstance(values, list | tuple) and len(values) == 2
    if not is_pair or any(type(value) not in (int, float) for value in values):
        raise UsageError(f"{where}{word} is {kind} of {values!r}; two numbers are needed")
    low, high = values
    if not low < high or (kind == "log-uniform" and low <= 0):
        above = ", the lower one above 0" if kind == "log-uniform" else ""
        raise UsageError(f"{where}{word} is {kind} of {values!r}; the lower end first{above}")
    for value in values:
        option.check(f"{where}{word}", value)
    is_whole = option.annotation in (int, int | None)
    is_log = kind == "log-uniform"
    return SpannedWord(
        word=word,
        low=low,
        high=high,
        is_log=is_log,
        is_whole=is_whole,
    )
