"""From a plan to what each of its cells asks for, the splits still unmade."""

import itertools
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import Option, did_you_mean

from ..algorithms import ALGORITHMS
from ..settings import SETTINGS
from .plan import RUN_WORDS, SEED_KINDS, PlanGroup, StudyPlan, Table
from .plan_text import PlanPath
from .split_words import SplitRequest, list_split_requests

_LABELS = ("name", "label")  # of an algorithm: what it is, and what a table calls it


@dataclass(frozen=True)
class AskedCell:
    """What a cell asks for, as the plan says it.

    where: its values on all axes, for tables and conditions. words, settings: of `fltrain.run`.
    seeds: by kind. path: of its algorithm in the plan, for errors.
    """

    group: str
    split: SplitRequest
    algorithm: str
    options: Mapping[str, Any]
    words: Mapping[str, Any]
    settings: Mapping[str, Any]
    where: Mapping[str, Any]
    path: PlanPath


def expand_plan(plan: StudyPlan) -> list[AskedCell]:
    """Return all cells of a plan, in its order.

    UsageError for an option or a setting that there is not, and for a condition that no cell meets.
    """
    cells = []
    for group in plan.groups:
        found = list(_expand_group(plan, group))
        if not found:
            where = plan.text.locate(group.path)
            raise UsageError(f"{where}the exclusions of {group.name} leave no cell")
        cells += found
    return cells


def _expand_group(plan: StudyPlan, group: PlanGroup) -> Iterator[AskedCell]:
    variants = _list_variants(plan, group)
    seeds = list(_list_seeds(group))
    used: set[int] = set()
    known: set[str] = set()
    for place, table in enumerate(group.splits):
        path: PlanPath = (*group.path, "splits", place)
        for request in list_split_requests(table, path, plan.text):
            for variant in variants:
                for cell in _expand_variant(group, request, variant, seeds, used):
                    known.update(cell.where)
                    if not _is_excluded(cell, group, used):
                        yield cell
    _require_met(plan, group, used, known)


def _list_variants(plan: StudyPlan, group: PlanGroup) -> list["_Variant"]:
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
        options = ALGORITHMS.options(ALGORITHMS.find(name))
        own = {}
        for word, given in table.items():
            if word not in _LABELS:
                option = _find_option(word, options, plan, (*path, word), name)
                own[word] = list_values(given, option)
        # What an algorithm says itself holds for it in place of the axis.
        axes = {word: list(values) for word, values in group.axes.items() if word not in own}
        for values in multiply(own):
            for of_axes in multiply(axes):
                variants.append(_Variant(table, path, values, of_axes, frozenset(options)))
    return variants


@dataclass(frozen=True)
class _Variant:
    """An algorithm with values. own: of its options and settings. axes: those of the group."""

    table: Table
    path: PlanPath
    own: Mapping[str, Any]
    axes: Mapping[str, Any]
    options: frozenset[str]


def _expand_variant(
    group: PlanGroup,
    request: SplitRequest,
    variant: _Variant,
    seeds: Sequence[Mapping[str, int]],
    used: set[int],
) -> Iterator[AskedCell]:
    name = str(variant.table["name"])
    values = {**group.fixed, **variant.axes, **variant.own}
    at = {**request.where, "algorithm": variant.table.get("label", name)}
    for chosen in _apply_conditions(group, at, values, used):
        for of_trial in _drop_idle_seeds(seeds, request):
            where = at | chosen | {f"{kind}_seed": seed for kind, seed in of_trial.items()}
            options = {word: chosen[word] for word in chosen if word in variant.options}
            rest = {word: chosen[word] for word in chosen if word not in variant.options}
            yield AskedCell(
                group=group.name,
                split=request.with_root(rest.get("data_root")).with_seed(of_trial["split"]),
                algorithm=name,
                options=options,
                words={word: rest[word] for word in rest if word in RUN_WORDS},
                settings={word: rest[word] for word in rest if word not in RUN_WORDS}
                | _set_seeds(of_trial),
                where={"group": group.name} | where,
                path=variant.path,
            )


def _apply_conditions(
    group: PlanGroup, at: Table, values: Table, used: set[int]
) -> Iterator[dict[str, Any]]:
    """Yield the values of a cell, those of its conditions in their places; lists multiply."""
    put: dict[str, list[Any]] = {}
    for number, condition in enumerate(group.when):
        if matches(condition.match, {**at, **values}):
            used.add(number)
            for word, given in condition.put.items():
                put[word] = list_values(given, SETTINGS.get(word))
    for chosen in multiply(put):
        yield dict(values) | chosen


def _is_excluded(cell: AskedCell, group: PlanGroup, used: set[int]) -> bool:
    is_out = False
    for number, exclusion in enumerate(group.exclude, start=len(group.when)):
        if matches(exclusion, cell.where):
            used.add(number)
            is_out = True
    return is_out


def _require_met(plan: StudyPlan, group: PlanGroup, used: set[int], known: set[str]) -> None:
    """Raise UsageError for a condition or an exclusion that is of no cell: it is misspelt."""
    conditions = [("when", place, one.match) for place, one in enumerate(group.when)]
    exclusions = [("exclude", place, one) for place, one in enumerate(group.exclude)]
    for number, (word, place, match) in enumerate([*conditions, *exclusions]):
        if number in used:
            continue
        path: PlanPath = (*group.path, word, place)
        where = plan.text.locate(path if path in plan.text.lines else (word, place))
        for name in match:
            if name not in known:
                raise UsageError(f"{where}no cell has {name!r}; {did_you_mean(name, known)}")
        raise UsageError(f"{where}no cell is {dict(match)}")


def matches(match: Table, where: Table) -> bool:
    """Return whether a cell has all the values that are asked for; a list means one of them."""
    for name, wanted in match.items():
        if name not in where:
            return False
        among = wanted if isinstance(wanted, list | tuple) else [wanted]
        if where[name] not in among:
            return False
    return True


def _list_seeds(group: PlanGroup) -> Iterator[dict[str, int]]:
    """Yield the seeds of each trial: those that are named multiply, the others count with it."""
    named = {kind: group.seeds[kind] for kind in SEED_KINDS if kind in group.seeds}
    for trial in range(group.trials or 1):
        for chosen in multiply(named):
            yield {kind: chosen.get(kind, trial) for kind in SEED_KINDS}


def _drop_idle_seeds(
    seeds: Sequence[Mapping[str, int]], request: SplitRequest
) -> list[Mapping[str, int]]:
    """Return the seeds without repeats: a split of a file is drawn by none."""
    if request.is_drawn:
        return list(seeds)
    kept = {(one["init"], one["order"]): dict(one) | {"split": 0} for one in seeds}
    return list(kept.values())


def _set_seeds(seeds: Mapping[str, int]) -> dict[str, int]:
    settings = {"seed": seeds["order"]}
    if seeds["init"] != seeds["order"]:
        settings["init_seed"] = seeds["init"]
    return settings


def _find_option(
    word: str, options: Mapping[str, Option], plan: StudyPlan, path: PlanPath, name: str
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


def multiply(lists: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every choice of a value from each list, the last list fastest."""
    for values in itertools.product(*lists.values()):
        yield dict(zip(lists, values, strict=True))
