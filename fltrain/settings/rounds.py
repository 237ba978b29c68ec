"""How many rounds there are, and who trains in them. Needs no torch."""

from dataclasses import dataclass
from typing import Annotated, TypedDict

from niidpart.errors import UsageError
from niidpart.registry import Above, AtLeast, AtMost, Below, list_names

from .ranges import COUNT, SEEDS


@dataclass(frozen=True)
class RoundSettings:
    """How many rounds there are, and who trains in them."""

    rounds: Annotated[int, "Communication rounds.", *COUNT] = 50
    fraction: Annotated[
        float, "Share of the parties that train in a round.", Above(0), AtMost(1)
    ] = 1.0
    cohort_size: Annotated[
        int | None, "Number of parties that train in a round, instead of a share.", *COUNT
    ] = None
    cohort: Annotated[
        str,
        f"How they are chosen: {', '.join(list_names('fltrain.cohorts'))} (docs/training.md).",
    ] = "uniform"
    candidates: Annotated[
        int | None,
        "Power-of-choice: parties drawn, of which those with the highest loss train; twice the "
        "cohort if not given.",
        *COUNT,
    ] = None
    clusters: Annotated[
        int, "By-cluster: clusters of label profiles, at most; each has its turn.", *COUNT
    ] = 10
    unavailable: Annotated[
        float,
        "Chance of each chosen party to fail: it trains and uploads nothing. One always reports.",
        AtLeast(0),
        Below(1),
    ] = 0.0
    new_parties: Annotated[
        float | None,
        "Parties that never train, a share such as 0.2 or a number: drawn by the seed and measured "
        "at home, with --finetune also after tuning. 0 for none.  [those that the split names]",
        AtLeast(0),
        COUNT[1],
    ] = None
    seed: Annotated[
        int, "Seed of cohorts, orders and, without --init-seed, initial weights.", *SEEDS
    ] = 0
    init_seed: Annotated[int | None, "Seed of the initial weights.", *SEEDS] = None


def require_new_parties(asked: float | None) -> None:
    """Raise UsageError for what is neither a share nor a number of parties."""
    if asked is not None and asked >= 1 and asked != int(asked):
        raise UsageError(
            f"new-parties is {asked:g}; it must be a share of the parties below 1, such as 0.2, or "
            "a whole number of them"
        )


class RoundSettingValues(TypedDict, total=False):
    """The same as keyword arguments."""

    rounds: int
    fraction: float
    cohort_size: int | None
    cohort: str
    candidates: int | None
    clusters: int
    unavailable: float
    new_parties: float | None
    seed: int
    init_seed: int | None
