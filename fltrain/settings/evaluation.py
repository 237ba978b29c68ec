"""When models are evaluated, and on what. Needs no torch."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

from niidpart.registry import AtLeast

from .ranges import COUNT


@dataclass(frozen=True)
class EvaluationSettings:
    """When models are evaluated, and on what."""

    eval_every: Annotated[
        int, "Rounds between evaluations; the last round is always evaluated.", *COUNT
    ] = 1
    stop_at: Annotated[
        str | None,
        "End the run after the first round that reaches a value, such as accuracy=0.9, loss=0.3 or "
        "party_test_accuracy_worst=0.5.",
    ] = None
    finetune: Annotated[
        int,
        "Epochs in which, after the last round, each party trains what it is served on its own "
        "rows; measured at home, as finetuned_party_test_accuracy.",
        AtLeast(0),
        COUNT[1],
    ] = 0
    calibrate: Annotated[
        int,
        "Features of each class, drawn like those of the parties, on which the last layer is "
        "trained once more after the last round: calibrated_test_accuracy. 0 for none.",
        AtLeast(0),
        COUNT[1],
    ] = 0
    calibrate_epochs: Annotated[int, "Epochs of that.", *COUNT] = 10
    noisy_test: Annotated[
        bool, "The global test set also as each party's noise and other transforms would show it."
    ] = False
    internals: Annotated[
        bool,
        "Write down in each evaluated round what the algorithm says of its own state, such as "
        "which of FedCD's models a party prefers.",
    ] = False
    drift: Annotated[
        Literal["none", "whole", "layers"],
        "Write down in each evaluated round how far local training moved each party's weights, and "
        "its cosine to the mean of all parties: of the whole model, or of each layer too. What the "
        "parties of that round moved is held in memory meanwhile.",
    ] = "none"
    validation_only: Annotated[
        bool,
        "Measure on the parties' validation parts alone: no test set is read, as while one tunes.",
    ] = False


class EvaluationSettingValues(TypedDict, total=False):
    """The same as keyword arguments."""

    eval_every: int
    stop_at: str | None
    finetune: int
    calibrate: int
    calibrate_epochs: int
    noisy_test: bool
    internals: bool
    drift: Literal["none", "whole", "layers"]
    validation_only: bool
