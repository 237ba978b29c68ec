"""From a plan to what each of its cells asks for, the splits still unmade."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from ..settings import SETTINGS
from .plan import SEED_KINDS, PlanGroup, StudyPlan
from .plan_checks import RUN_WORDS, PlanTable
from .plan_text import PlanPath
from .search_points import SearchedWord
from .split_words import SplitRequest, list_split_requests
from .variants import Variant, list_values, list_variants, multiply

TUNED = "tuned"  # the axis on which the two rows of a tuned algorithm differ
DEFAULT, WINNER = "default", "tuned"  # its values


@dataclass(frozen=True)
class AskedCell:
    """What a cell asks for, as the plan says it.

    where: its values on all axes, for tables and conditions. words, settings: of `fltrain.run`.
    seeds: by kind. path: of its algorithm in the plan, for errors. space: what is searched for it,
    () where nothing is tuned. is_trial: whether it is a run of a search, and in no table.
    """

    group: str
    split: SplitRequest
    algorithm: str
    options: Mapping[str, Any]
    words: Mapping[str, Any]
    settings: Mapping[str, Any]
    where: Mapping[str, Any]
    path: PlanPath
    space: Sequence[SearchedWord] = ()
    is_trial: bool = False


def expand_plan(plan: StudyPlan) -> list[AskedCell]:
    """Return all cells of a plan, in its order; of what is tuned those with the default values.

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
    variants = list_variants(plan, group)
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


def _expand_variant(
    group: PlanGroup,
    request: SplitRequest,
    variant: Variant,
    seeds: Sequence[Mapping[str, int]],
    used: set[int],
) -> Iterator[AskedCell]:
    name = str(variant.table["name"])
    values = {**group.fixed, **variant.axes, **variant.own}
    at = {**request.where, "algorithm": variant.table.get("label", name)}
    for chosen in _apply_conditions(group, at, values, used):
        for of_trial in _drop_idle_seeds(seeds, request):
            where = at | _list_told(chosen, variant.space)
            where |= {f"{kind}_seed": seed for kind, seed in of_trial.items()}
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
                space=variant.space,
            )


def _list_told(chosen: PlanTable, space: Sequence[SearchedWord]) -> dict[str, Any]:
    """Return the values by which tables know a cell: what is searched has no value of its own."""
    if not space:
        return dict(chosen)
    searched = [one.word for one in space]
    told = {word: value for word, value in chosen.items() if word not in searched}
    return told | {TUNED: DEFAULT}


def _apply_conditions(
    group: PlanGroup, at: PlanTable, values: PlanTable, used: set[int]
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


def matches(match: PlanTable, where: PlanTable) -> bool:
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
