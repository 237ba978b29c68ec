"""What a run asks of the parties of its split: who never trains, and what the others must have."""

import math

import numpy as np
import torch

import niidpart
from niidpart.errors import UsageError
from niidpart.splits.new_parties import list_new_parties
from niidpart.splits.recipe import JSON

from ..cohorts import KnownParties, require_cohorts
from ..disk.plain_folder import RunError
from ..draws import key, order
from ..interface import Algorithm
from ..settings import Settings
from .configuration import CONFIG, NEW_PARTIES

_ADVICE = "make the split with one: niidpart make ... --{} 0.2"


def draw_new_parties(split: niidpart.FederatedSplit, settings: Settings) -> tuple[int, ...]:
    """Return the numbers of the parties that are held out, ascending; () where none is asked for.

    They are those that the split names, unless the settings ask for others: then the first that
    have a test part, in an order of all parties drawn by the seed, so fewer of them are some of
    more. UsageError where the split does not have as many, or nobody is left to train.
    """
    if settings.new_parties is None:
        return _list_stated(split)
    if not settings.new_parties:
        return ()
    sizes = split.test.sizes.tolist()
    n_parties = len(sizes)
    wanted = _count_wanted(n_parties, settings.new_parties)
    if wanted >= n_parties:
        raise UsageError(
            f"new-parties is {settings.new_parties:g}, and the split has {n_parties} parties: "
            f"none would be left to train; give at most {n_parties - 1}"
        )
    in_order = order(key(settings.seed, "new-parties"), 0, n_parties, torch.device("cpu"))
    measured = [party for party in in_order.tolist() if sizes[party]]
    if wanted > len(measured):
        there = f"{len(measured)} of {n_parties} parties have" if measured else "no party has"
        fewer = ", or ask for fewer" if measured else ""
        raise UsageError(
            f"new-parties asks for {wanted}, and {there} a test part to measure them on; make the "
            f"split with niidpart make ... --test 0.2{fewer}"
        )
    drawn = sorted(measured[:wanted])
    _require_others(split, drawn, "ask for fewer, or take another --seed")
    return tuple(drawn)


def _list_stated(split: niidpart.FederatedSplit) -> tuple[int, ...]:
    """Return the parties that the split itself holds out; UsageError where it cannot be so."""
    stated = list(list_new_parties(split))
    if not stated:
        return ()
    advice = "train on all parties: --new-parties 0"
    _require_others(split, stated, advice)
    if not split.test.sizes[stated].any():
        raise UsageError(
            f"the split holds out {_name_parties(stated)}, and none of them has a test part to "
            f"measure it on; {_ADVICE.format('test')}, or {advice}"
        )
    return tuple(stated)


def _require_others(split: niidpart.FederatedSplit, held_out: list[int], advice: str) -> None:
    """Raise UsageError where no party that is not held out has anything to train on."""
    if not np.delete(split.train.sizes, held_out).any():
        raise UsageError(
            f"new-parties holds out {', '.join(map(str, held_out))}, and no other party has a "
            f"training example; {advice}"
        )


def _count_wanted(n_parties: int, asked: float) -> int:
    """Return how many parties a number, or a share of all, is: the floor, at least one."""
    if asked >= 1:
        return int(asked)
    # 100 x 0.29 is 28.999999999999996 in floats
    return max(1, math.floor(n_parties * asked + 1e-9))


def require_home_parts(
    split: niidpart.FederatedSplit, algorithm: Algorithm, settings: Settings
) -> None:
    """Raise UsageError where a run would wait for a number of the parties that it can never have.

    That of fine-tuning needs a test or a validation part, one that the run stops at just that part.
    """
    read = ("val",) if settings.validation_only else ("test", "val")
    held = [name for name in read if split.parts[name].n]
    if settings.finetune and not held:
        is_needed = "finetune" in algorithm.settings
        tuning = f"{algorithm.name}'s fine-tuning" if is_needed else "fine-tuning"
        instead = "" if is_needed else "leave finetune out, or "
        raise UsageError(
            f"what {tuning} comes to is measured at home, and the parties have no test part; "
            f"{instead}{_ADVICE.format('test')}"
        )
    rule = settings.stop_rule
    for name in ("test", "val"):
        if rule is not None and f"party_{name}_" in rule.metric and name not in held:
            raise UsageError(
                f"stop-at waits for {rule.metric}, and the parties have no {name} part; "
                f"{_ADVICE.format(name)}"
            )


def require_choice(
    split: niidpart.FederatedSplit, held_out: tuple[int, ...], settings: Settings
) -> None:
    """Raise UsageError where the others cannot be chosen from as the settings ask for."""
    counts = np.delete(split.train.counts, held_out, axis=0).astype(np.int64)
    require_cohorts(KnownParties(torch.from_numpy(counts), len(held_out)), settings)


def require_stated(config: JSON, drawn: tuple[int, ...]) -> None:
    """Raise RunError where a configuration names other parties as held out than its seed draws."""
    stated = config.get(NEW_PARTIES, [])
    if stated != list(drawn):
        raise RunError(
            f"{CONFIG} says that {_name_parties(stated)} were held out, and its seed draws "
            f"{_name_parties(list(drawn))}: it was changed, or written by a version that drew "
            "otherwise"
        )


def _name_parties(numbers: list[int]) -> str:
    return f"the parties {', '.join(map(str, numbers))}" if numbers else "no parties"
