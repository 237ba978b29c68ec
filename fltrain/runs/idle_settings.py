"""Settings that would do nothing: refused where others make them void, else said in a line.

One rule for all (docs/design.md). What other settings make void is a contradiction of whoever asked
for both, so it is refused; a preset's value gives way, since nobody asked for it. What only the
algorithm, the model or the split makes void is said, since one command serves many of these.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from niidpart.errors import UsageError

from ..algorithms import ALGORITHMS
from ..cohorts import count_cohort
from ..counting import count_steps, count_steps_per_epoch
from ..engine.stragglers import count_stragglers
from ..interface import Algorithm
from ..settings import SETTINGS, Settings


@dataclass(frozen=True)
class Circumstances:
    """What a run's settings meet: they may leave some of them nothing to do.

    sizes: training examples of each party, of the only one where all train as one. seed_is_used:
    whether a seed draws any initial weights. is_unlike: whether parties have models of different
    shapes.
    """

    algorithm: Algorithm
    sizes: list[int]
    seed_is_used: bool
    is_unlike: bool


def drop_idle(settings: Settings, asked: Mapping[str, Any]) -> Settings:
    """Return the settings without those that others make void, which nobody asked for.

    UsageError for one that is asked for.
    """
    for name, explain in _WHY_VOID.items():
        value = getattr(settings, name)
        reason = "" if value == SETTINGS[name].default else explain(settings)
        if reason and name in asked:
            raise UsageError(f"{write_setting(name, value)} would do nothing: {reason}")
        if reason:
            settings = replace(settings, **{name: SETTINGS[name].default})
    return settings


def mention_idle(settings: Settings, asked: frozenset[str], met: Circumstances) -> None:
    """Warn of each setting that was asked for and has nothing to do in this run."""
    for name, explain in _WHY_IDLE.items():
        value = getattr(settings, name)
        if name not in asked or value == SETTINGS[name].default:
            continue
        reason = explain(settings, met)
        if reason:
            warnings.warn(f"{write_setting(name, value)} does nothing here: {reason}", stacklevel=2)


def mention_given_way(
    preset: str | None, before: Settings, after: Settings, asked: Mapping[str, Any]
) -> None:
    """Warn of a preset's values that what was asked for left no room.

    before, after: the settings as they were put together, and as they fit.
    """
    gone = []
    for field in fields(before):
        name = field.name
        value = getattr(before, name)
        is_of_preset = name not in asked and value != SETTINGS[name].default
        if is_of_preset and getattr(after, name) != value:
            gone.append(write_setting(name, value))
    if gone:
        warnings.warn(
            f"{', '.join(gone)} of the preset {preset} {'gives' if len(gone) == 1 else 'give'} way "
            "to what was asked for beside it",
            stacklevel=2,
        )


def write_setting(name: str, value: Any) -> str:
    """Return a setting and its value as messages say them."""
    flag = name.replace("_", "-")
    if value is True:
        return flag
    if isinstance(value, tuple):
        return f"{flag} {','.join(map(str, value))}"
    return f"{flag} {value}"


def _why_void_stragglers(settings: Settings) -> str:
    unit = "local-steps" if settings.local_steps else "local-epochs"
    work = settings.local_steps or settings.local_epochs
    if work > 1:
        return ""
    return f"stragglers do a part of the work, and {unit} is 1; raise it, or leave it out"


def _why_void_schedule(settings: Settings) -> str:
    if settings.lr_schedule != "steps" or settings.lr_drops:
        return ""
    return "there are no lr-drops; add --lr-drops 40,80, or leave it out"


def _why_void_over(settings: Settings) -> str:
    if settings.local_steps == 1:
        return "local-steps is 1, and a round begins and ends with it; leave it out"
    for round in {1, settings.warmup + 1, settings.rounds}:
        if settings.lr_at(round, share=0.5) != settings.lr_at(round):
            return ""
    return (
        f"with lr-schedule {settings.schedule_name} the learning rate stays within a round; leave "
        "it out, or add --lr-schedule cosine"
    )


def _why_void_pad(settings: Settings) -> str:
    return "" if settings.crop else "it is of the padding of crop; add --crop 4, or leave it out"


def _why_void_calibration(settings: Settings) -> str:
    if settings.calibrate:
        return ""
    return "it is of calibration; add --calibrate 2000, or leave it out"


def _why_void_cohort(settings: Settings) -> str:
    if settings.cohort_size is not None or settings.fraction < 1:
        return ""
    return (
        "all parties train in each round, so that there is nobody to choose; add --fraction or "
        "--cohort-size, or leave it out"
    )


def _why_void_checkpoint_share(settings: Settings) -> str:
    if settings.checkpoint_every is None:
        return ""
    return "checkpoint-every says after which rounds there are checkpoints; leave one of them out"


_WHY_VOID: dict[str, Callable[[Settings], str]] = {
    "calibrate_epochs": _why_void_calibration,
    "cohort": _why_void_cohort,
    "stragglers": _why_void_stragglers,
    "lr_schedule": _why_void_schedule,
    "lr_over": _why_void_over,
    "pad": _why_void_pad,
    "checkpoint_share": _why_void_checkpoint_share,
}


def _why_idle_layer(settings: Settings, met: Circumstances) -> str:
    # Of an algorithm of one's own nobody knows what it reads.
    is_read = met.algorithm.features or settings.calibrate
    if is_read or met.algorithm.spec not in ALGORITHMS.names():
        return ""
    return f"{met.algorithm.name} reads no features"


def _why_idle_column(settings: Settings, met: Circumstances) -> str:
    return "" if met.is_unlike else "all parties have one model (--model cnn+mlp gives several)"


def _why_idle_seed(settings: Settings, met: Circumstances) -> str:
    return "" if met.seed_is_used else "all initial weights are given, so that none are drawn"


def _why_idle_share(settings: Settings, met: Circumstances) -> str:
    return f"{met.algorithm.name} trains as one party" if met.algorithm.pooled else ""


def _why_idle_choice(settings: Settings, met: Circumstances) -> str:
    if met.algorithm.pooled:
        return _why_idle_share(settings, met)
    if _count_chosen(settings, met) < len(met.sizes):
        return ""
    return f"all {len(met.sizes)} parties train in each round"


def _why_idle_failure(settings: Settings, met: Circumstances) -> str:
    if _count_chosen(settings, met) > 1:
        return ""
    return "one party trains in each round, and one always reports"


def _why_idle_stragglers(settings: Settings, met: Circumstances) -> str:
    chosen = _count_chosen(settings, met)
    if count_stragglers(chosen, settings):
        return ""
    return f"of {chosen} in a round it is nobody; {0.5 / chosen:.3g} is one of them"


def _why_idle_internals(settings: Settings, met: Circumstances) -> str:
    return "" if met.algorithm.describe else f"{met.algorithm.name} says nothing of its own state"


def _why_idle_groups(settings: Settings, met: Circumstances) -> str:
    ungrouped = replace(settings, accumulate=1)
    if any(
        count_steps_per_epoch(n, settings) < count_steps_per_epoch(n, ungrouped) for n in met.sizes
    ):
        return ""
    return f"no party has two batches of {settings.batch_size}"


def _why_idle_drops(settings: Settings, met: Circumstances) -> str:
    if min(settings.lr_drops) < settings.rounds:
        return ""
    return f"the run has {settings.rounds} rounds"


def _why_idle_over(settings: Settings, met: Circumstances) -> str:
    if any(count_steps(n, settings) > 1 for n in met.sizes):
        return ""
    return "each party has one step in a round"


def _count_chosen(settings: Settings, met: Circumstances) -> int:
    return count_cohort(len(met.sizes), settings)


_WHY_IDLE: dict[str, Callable[[Settings, Circumstances], str]] = {
    "features_layer": _why_idle_layer,
    "models_by": _why_idle_column,
    "init_seed": _why_idle_seed,
    "fraction": _why_idle_share,
    "cohort_size": _why_idle_share,
    "cohort": _why_idle_choice,
    "unavailable": _why_idle_failure,
    "stragglers": _why_idle_stragglers,
    "accumulate": _why_idle_groups,
    "lr_drops": _why_idle_drops,
    "lr_over": _why_idle_over,
    "internals": _why_idle_internals,
    "drift": _why_idle_share,
}
