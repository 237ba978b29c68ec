"""What is kept of a run. Needs no torch."""

from dataclasses import dataclass
from typing import Annotated, TypedDict

from niidpart.registry import Above, AtMost

from .ranges import COUNT


@dataclass(frozen=True)
class OutputSettings:
    """What is kept of a run."""

    checkpoint_every: Annotated[
        int | None,
        "Rounds between checkpoints, each on the disk when its round is shown; the last round "
        "always has one. Without it they are written beside training, as checkpoint-share says.",
        *COUNT,
    ] = None
    checkpoint_share: Annotated[
        float,
        "Share of the time that writing checkpoints may take; about 60 seconds of training "
        "are lost by a kill at most, or a round that takes longer.",
        Above(0),
        AtMost(1),
    ] = 0.1
    keep: Annotated[
        str,
        "Which checkpoints stay, and so are written: all; every:N, those of rounds that N divides; "
        "or last. The newest and one to fall back on stay in any case.",
    ] = "last"


class OutputSettingValues(TypedDict, total=False):
    """The same as keyword arguments."""

    checkpoint_every: int | None
    checkpoint_share: float
    keep: str
