"""The algorithms of a plan, each with every choice of its own values and of the axes. No torch."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import Option, did_you_mean

from ...algorithms import ALGORITHMS
from ...runs.grid import multiply_axes
from ...settings import SETTINGS
from .plan import PlanGroup, StudyPlan
from .plan_checks import RUN_WORDS, PlanTable, require_table
from .plan_text import PlanPath
from .search_points import SearchedWord
from .tuning_words import read_space

_LABELS = ("name", "label")  # of an algorithm: what it is, and what a table calls it
_TUNE = "tune"  # of an algorithm: what it searches besides


@dataclass(frozen=True)
class Variant:
    """An algorithm with values. own: of its options and settings. axes: those of the group.

    space: what is searched for it.
    """

    table: PlanTable
    path: PlanPath
    own: Mapping[str, Any]
    axes: Mapping[str, Any]
    options: frozenset[str]
    space: Sequence[SearchedWord]


def list_variants(plan: StudyPlan, group: PlanGroup) -> list[Variant]:
    """Return each choice of an algorithm, of its own values and of the axes."""
    variants = []
    labelled: dict[str, str] = {}
    for place, table in enumerate(group.algorithms):
        path: PlanPath = (*group.path, "algorithms", place)
        if "name" not in table:
            where = plan.text.locate(path)
            raise UsageError(f"{where}an algorithm needs a name, such as name = 'fedavg'")
        name = str(table["name"])
        label = str(table.get("label", name))
        if labelled.setdefault(label, name) != name:
            raise UsageError(
                f"{plan.text.locate(path)}{labelled[label]} and {name} are both called {label!r}, "
                "and a table would join them; give one another label"
            )
        with plan.text.locate_errors((*path, "name")):
            options = ALGORITHMS.options(ALGORITHMS.find(name))
        own = {}
        for word, given in table.items():
            if word not in (*_LABELS, _TUNE):
                option = _find_option(
                    word=word,
                    options=options,
                    plan=plan,
                    path=(*path, word),
                    name=name,
                )
                with plan.text.locate_errors((*path, word)):
                    own[word] = list_values(given, option)
        # What an algorithm says itself holds for it in place of the axis.
        axes = {word: list(values) for word, values in group.axes.items() if word not in own}
        space = _read_space(
            plan=plan,
            group=group,
            table=table,
            path=path,
            lists={**axes, **own},
        )
        for values in multiply_axes(own):
            for of_axes in multiply_axes(axes):
                variants.append(
                    Variant(
                        table=table,
                        path=path,
                        own=values,
                        axes=of_axes,
                        options=frozenset(options),
                        space=space,
                    )
                )
    return variants


def _read_space(
    plan: StudyPlan,
    group: PlanGroup,
    table: PlanTable,
    path: PlanPath,
    lists: Mapping[str, Sequence[Any]],
) -> Sequence[SearchedWord]:
    """Return what an algorithm searches: what all do, then its own; () where nothing is tuned.

    lists: the values of its words and axes, none of which may be searched too.
    """
    own_path: PlanPath = (*path, _TUNE)
    own = table.get(_TUNE, {})
    tuning = group.tuning
    if tuning is None:
        if _TUNE in table:
            where = plan.text.locate(own_path)
            raise UsageError(f"{where}tune is of plans with [tuning], and there is none")
        return ()
    require_table(own, own_path, plan.text)
    name = str(table["name"])
    tables = {word: (given, (*tuning.path, "space", word)) for word, given in tuning.space.items()}
    tables |= {word: (given, (*own_path, word)) for word, given in own.items()}
    if not tables:
        raise UsageError(
            f"{plan.text.locate(path)}{name} searches nothing, and all get the same number of "
            "trials; say [tuning.space], which is of all, or tune = {...} of this one"
        )
    for word, (_, place) in tables.items():
        if len(lists.get(word, ())) > 1:
            raise UsageError(
                f"{plan.text.locate(place)}{word} is searched, and an axis of {name} too; "
                "it is one or the other"
            )
    options = ALGORITHMS.options(ALGORITHMS.find(name))

    def find_option(word: str, place: PlanPath) -> Option | None:
        return _find_option(
            word=word,
            options=options,
            plan=plan,
            path=place,
            name=name,
        )

    return read_space(tables, find_option, plan.text)


def _find_option(
    word: str,
    options: Mapping[str, Option],
    plan: StudyPlan,
    path: PlanPath,
    name: str,
) -> Option | None:
    """Return the option or setting that a word of an algorithm's table means."""
    if word in options:
        return options[word]
    known = [*options, *RUN_WORDS, *(key for key in SETTINGS if key not in ("seed", "init_seed"))]
    if word not in known:
        where = plan.text.locate(path)
        raise UsageError(
            f"{where}{word!r} is no option of {name} and no setting; {did_you_mean(word, known)}"
        )
    return SETTINGS.get(word)


def list_values(given: Any, option: Option | None) -> list[Any]:
    """Return the values that a word of a plan goes through: a list's, or the one given.

    Where the option itself takes a list, a list of lists has several.
    """
    is_list = isinstance(given, list | tuple)
    takes_list = option is not None and _takes_list(option.annotation)
    if is_list and takes_list and not any(isinstance(one, list | tuple) for one in given):
        return [given]
    if is_list and not given:
        raise UsageError(f"an axis has no values: {given!r}; give one at least")
    return list(given) if is_list else [given]


def _takes_list(annotation: Any) -> bool:
    inner = [annotation, *typing.get_args(annotation)]
    return any(typing.get_origin(one) in (tuple, list) or one in (tuple, list) for one in inner)
