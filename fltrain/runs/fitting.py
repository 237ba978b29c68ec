"""Settings that suit each other and the algorithm: what would do nothing, or wrong, is refused."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from niidpart.errors import UsageError

from ..cohorts import COHORTS, find_cohort_rule
from ..compressors import COMPRESSORS, find_compressor
from ..interface import Algorithm
from ..optimizers import OPTIMIZERS, find_optimizer
from ..schedules import SCHEDULES, find_schedule
from ..settings import SETTINGS, Settings
from ..settings.schedule import ScheduleSettings
from .idle_settings import drop_idle

# Settings of the parties' optimisers that only some of them use.
_OF_OPTIMIZERS = ("momentum", "nesterov", "betas", "eps")
# Settings of compression that each compressor has, whatever it does itself.
_OF_ALL_COMPRESSORS = ("compress_by", "error_feedback")
# Two ways to say one thing. None switches the first off, and it counts where both have values.
_PAIRS = {
    ("cohort_size", "fraction"): "two sizes of a cohort",
    ("local_steps", "local_epochs"): "two amounts of work in a round",
    ("clip_norm", "clip_value"): "two ways to clip a gradient",
}
# Whose options let its steps be those of any optimiser, and by what.
_TAKES_ANY = {"scaffold": "give --option i --correction grad, which takes any (docs/training.md)"}


def fit_settings(settings: Settings, algorithm: Algorithm, asked: Mapping[str, Any]) -> Settings:
    """Return the settings with those that the algorithm cannot do without.

    Those that the cohort's rule, the schedule and the optimiser do not use, and others that would
    do nothing, have their defaults. asked: what was asked for by name, and not by a preset.
    UsageError where that does not suit the rest.
    """
    for name, needed in algorithm.settings.items():
        if asked.get(name, needed) != needed:
            raise UsageError(
                f"{algorithm.name} needs {_flag(name)} {needed}, "
                f"{asked[name]} was asked for; leave it out, or change what {algorithm.name} needs "
                "by its own options"
            )
    fitting = replace(settings, **algorithm.settings)
    for pair, what in _PAIRS.items():
        fitting = _choose_one(fitting, asked, pair, what)
    fitting = _fit_cohort(fitting, asked)
    fitting = _fit_schedule(fitting, asked)
    fitting = _fit_optimizer(fitting, asked)
    fitting = _fit_compression(fitting, asked)
    _require_suited(fitting, algorithm)
    fitting = drop_idle(fitting, asked)
    if fitting.finetune and algorithm.pooled:
        raise UsageError(
            f"{algorithm.name} trains as one party, and finetune is work of each; leave it out"
        )
    return fitting


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _choose_one(
    settings: Settings, asked: Mapping[str, Any], pair: tuple[str, str], what: str
) -> Settings:
    """Return the settings with one of a pair that exclude each other: the one asked for."""
    first, second = pair
    given = [name for name in pair if asked.get(name) is not None]
    if len(given) == len(pair):
        values = [f"{_flag(first)} is {getattr(settings, first)}"]
        values.append(f"{_flag(second)} {getattr(settings, second)}")
        raise UsageError(f"{' and '.join(values)}: {what}; give one")
    if given == [second]:
        return replace(settings, **{first: SETTINGS[first].default})
    # Epochs that steps stand in the place of may stay: they exclude nothing.
    if getattr(settings, first) is None or second == "local_epochs":
        return settings
    return replace(settings, **{second: SETTINGS[second].default})


def _fit_cohort(settings: Settings, asked: Mapping[str, Any]) -> Settings:
    """Return the settings without what the rule of the cohort does not use."""
    used_by = {name: find_cohort_rule(name).uses for name in COHORTS.names()}
    some = {setting for uses in used_by.values() for setting in uses}
    idle = sorted(some.difference(used_by[settings.cohort]))
    for name in idle:
        if asked.get(name) is not None:
            owner = next(owner for owner, uses in used_by.items() if name in uses)
            raise UsageError(
                f"{_flag(name)} is used by cohort {owner}, and that is {settings.cohort}; "
                f"leave it out, or add --cohort {owner}"
            )
    return replace(settings, **{name: SETTINGS[name].default for name in idle})


def _fit_schedule(settings: Settings, asked: Mapping[str, Any]) -> Settings:
    """Return the settings without what the schedule does not use, which nobody asked for."""
    used_by = {name: find_schedule(name).uses for name in SCHEDULES.names()}
    some = {setting for uses in used_by.values() for setting in uses}
    if _is_asked("lr_drops", asked) and "lr_schedule" not in asked:
        # They mean their schedule, whatever a preset has.
        settings = replace(settings, lr_schedule=None)
    in_order = [field.name for field in fields(ScheduleSettings) if field.name in some]
    chosen = settings.schedule_name
    idle = [name for name in in_order if name not in used_by[chosen]]
    for name in idle:
        if _is_asked(name, asked):
            owners = [owner for owner, uses in used_by.items() if name in uses]
            raise UsageError(
                f"{_flag(name)} is used by lr-schedule {' and '.join(owners)}, and that is "
                f"{chosen}; leave it out, or add --lr-schedule {owners[0]}"
            )
    settings = replace(settings, **{name: SETTINGS[name].default for name in idle})
    require_rates(settings)
    return settings


def _fit_compression(settings: Settings, asked: Mapping[str, Any]) -> Settings:
    """Return the settings without what the compressor does not use."""
    used_by = {name: find_compressor(name).uses for name in COMPRESSORS.names()}
    some = {setting for uses in used_by.values() for setting in uses} - set(_OF_ALL_COMPRESSORS)
    chosen = settings.compress
    used = set() if chosen is None else {*used_by[chosen], *_OF_ALL_COMPRESSORS}
    idle = sorted({*some, *_OF_ALL_COMPRESSORS} - used)
    for name in idle:
        if asked.get(name) is not None and asked[name] != SETTINGS[name].default:
            owners = [owner for owner, uses in used_by.items() if name in uses] or ["topk"]
            raise UsageError(
                f"{_flag(name)} is of compression, and compress is {chosen or 'not asked for'}; "
                f"leave it out, or add --compress {owners[0]}"
            )
    return replace(settings, **{name: SETTINGS[name].default for name in idle})


def _is_asked(name: str, asked: Mapping[str, Any]) -> bool:
    """Return whether something was asked for that is not nothing, as () is."""
    return name in asked and asked[name] not in ((), [])


def require_rates(settings: Settings) -> None:
    """Raise UsageError for a learning rate that rises above --lr, or is 0 before the end."""
    if settings.warmup >= settings.rounds:
        raise UsageError(
            f"warmup is {settings.warmup} rounds of {settings.rounds}; it must leave one after it"
        )
    if settings.lr_end > settings.lr:
        raise UsageError(
            f"lr-end is {settings.lr_end}, above lr, {settings.lr}: schedules fall; "
            "give a lower --lr-end, or let the rate rise by --warmup"
        )
    last = settings.lr_at(settings.rounds)
    if last <= 0:
        raise UsageError(
            f"the learning rate of round {settings.rounds} is {last}; it must be above 0: "
            "give less of a fall, or fewer rounds"
        )


def _fit_optimizer(settings: Settings, asked: Mapping[str, Any]) -> Settings:
    """Return the settings without what the optimiser does not use, which nobody asked for."""
    uses = find_optimizer(settings.optimizer).uses
    idle = [name for name in _OF_OPTIMIZERS if name not in uses]
    for name in idle:
        if asked.get(name):
            owners = [other for other in OPTIMIZERS.names() if name in find_optimizer(other).uses]
            raise UsageError(
                f"{_flag(name)} is of optimizer {' and '.join(owners)}, and the optimizer is "
                f"{settings.optimizer}; leave it out"
            )
    off = {name: SETTINGS[name].default for name in idle}
    if "momentum" in off:
        off["momentum"] = 0.0
    settings = replace(settings, **off)
    _require_optimizer(settings)
    return settings


def _require_optimizer(settings: Settings) -> None:
    """Raise UsageError for settings of optimiser and clipping that exclude each other."""
    if len(settings.betas) != 2:
        raise UsageError(f"betas is {settings.betas}; two numbers are needed, such as 0.9,0.999")
    if settings.nesterov and settings.momentum == 0:
        raise UsageError("nesterov needs momentum above 0; give --momentum 0.9, or leave it out")
    record = find_optimizer(settings.optimizer)
    numbers = {name: getattr(settings, name) for name in record.uses}
    if settings.keep_optimizer and not record.list_slots(numbers):
        raise UsageError(
            f"keep-optimizer: {settings.optimizer} without {record.needs} has nothing to keep; "
            "leave it out"
        )


def _require_suited(settings: Settings, algorithm: Algorithm) -> None:
    """Raise UsageError for steps with which the algorithm's equations would not hold."""
    if algorithm.optimizer == "sgd":
        unsuited = {
            f"optimizer {settings.optimizer}": settings.optimizer != "sgd",
            "nesterov": settings.nesterov,
            "keep-optimizer": settings.keep_optimizer,
            "lr-over steps": settings.lr_over == "steps",
        }
        for what, is_there in unsuited.items():
            if is_there:
                way_out = _TAKES_ANY.get(algorithm.name, "leave it out")
                raise UsageError(
                    f"{algorithm.name} cannot do with {what}: its equations count on plain SGD, "
                    "whose momentum starts anew and whose learning rate stays within a round; "
                    f"{way_out}, or take another algorithm"
                )
    if algorithm.decay == "algorithm" and settings.optimizer == "adamw" and settings.weight_decay:
        raise UsageError(
            f"{algorithm.name} adds weight decay to the gradient itself, and adamw would take it "
            "off the weights; use --optimizer adam, or --weight-decay 0"
        )
