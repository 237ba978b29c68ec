"""Who is chosen to train in a round: one file each; the folder is the registry.

A file ends in its record, `ENTRY = CohortRule(choose=...)`. Its function sees what is known of the
parties and draws by the counter of the round, so that a cohort depends on seed, round and, where
the rule looks at it, the state: never on engine, rank or what was drawn before. Its keyword-only
parameters are the settings that it uses (`fltrain/settings/rounds.py` declares them).
"""

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from niidpart.errors import UsageError
from niidpart.registry import RecordRegistry

from ..settings import Settings
from ._known import CohortDraw, KnownParties

__all__ = [
    "COHORTS",
    "CohortDraw",
    "CohortRule",
    "KnownParties",
    "count_cohort",
    "find_cohort_rule",
    "require_cohorts",
]


@dataclass(frozen=True)
class CohortRule:
    """A way to choose the parties of a round.

    Parameters
    ----------
    choose : callable
        (parties, draw, *, its settings) -> [S] int64, the ids of different parties, in any order.
        It is `draw.size` of them, or all that can be chosen where these are fewer.
    require : callable or None
        (parties, size, *, its settings) -> None. It raises UsageError before the first round where
        cohorts of that size cannot be chosen among such parties.
    """

    choose: Callable[..., Tensor]
    require: Callable[..., None] | None = None

    @functools.cached_property
    def uses(self) -> tuple[str, ...]:
        """The names of the settings that it uses."""
        return tuple(inspect.getfullargspec(self.choose).kwonlyargs)

    def select_numbers(self, settings: Settings) -> dict[str, Any]:
        """Return the settings that it uses.

        Parameters
        ----------
        settings : Settings
        """
        return {name: getattr(settings, name) for name in self.uses}


COHORTS = RecordRegistry("fltrain.cohorts", "cohort rule", CohortRule, "choose")


@functools.cache
def find_cohort_rule(name: str) -> CohortRule:
    """Return the record of a rule. It is looked up once: every round asks for it."""
    return COHORTS.record(name)


def count_cohort(n_parties: int, settings: Settings) -> int:
    """Return how many parties are chosen: --cohort-size, or max(1, floor(P * fraction)).

    A size is at most the number of parties, which is 1 where all train as one.
    """
    if settings.cohort_size is not None:
        return min(settings.cohort_size, n_parties)
    # 100 x 0.29 is 28.999999999999996 in floats
    return max(1, math.floor(n_parties * settings.fraction + 1e-9))


def require_cohorts(parties: KnownParties, settings: Settings) -> None:
    """Raise UsageError where such cohorts cannot be chosen among these parties."""
    n_parties = len(parties)
    if settings.cohort_size is not None and settings.cohort_size > n_parties:
        raise UsageError(
            f"cohort-size is {settings.cohort_size}, and the split has "
            f"{parties.describe_number()}; give at most that, or --fraction"
        )
    rule = find_cohort_rule(settings.cohort)
    if rule.require is not None:
        size = count_cohort(n_parties, settings)
        rule.require(parties, size, **rule.select_numbers(settings))
