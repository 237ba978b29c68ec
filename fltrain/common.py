"""The settings that runs have in common which train side by side. Needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Self

from niidpart.errors import UsageError

from .settings.engine import STACKING

# Settings in which the trials of one setting differ.
SEEDS = ("seed", "init_seed")
# Settings that change neither the number of rounds nor what is done to examples.
SWEPT = (
    "lr",
    "momentum",
    "weight_decay",
    "lr_factor",
    "lr_decay",
    "lr_end",
    "eps",
    "clip_norm",
    "clip_value",
    "topk_share",
    "qsgd_levels",
    *SEEDS,
)
# What a number of an algorithm may set for a cell (fedavg-ft's epochs).
_OF_EACH = ("finetune", "calibrate", "calibrate_epochs")


@dataclass(frozen=True)
class Common:
    """The settings that all runs of a sweep share, as they were asked for.

    They decide how many rounds there are, when a run is evaluated and written down, and on what
    its jobs train. Of the last five an `Execution` is chosen. device: cpu or cuda, found for the
    one that was asked for.
    """

    rounds: int
    eval_every: int
    checkpoint_every: int | None
    checkpoint_share: float
    keep: str
    tf32: bool
    compile: bool
    device: str
    engine: str
    threads: int | None
    workers: int | None
    memory: float | None

    def __post_init__(self) -> None:
        """Raise UsageError for settings that exclude each other, or that the device has not."""
        device, engine, workers = self.device, self.engine, self.workers
        if workers and engine in ("looped", *STACKING):
            raise UsageError(
                f"workers is {workers}, and engine {engine} has none; "
                "leave --workers out, or use processes or native"
            )
        if workers and engine == "auto" and self.threads not in (None, 1):
            raise UsageError(
                f"workers have one thread each, and threads is {self.threads}; "
                "leave out --workers or --threads"
            )
        if self.memory and engine not in ("auto", *STACKING):
            raise UsageError(
                f"memory is for engines stacked and graph, the engine is {engine}; "
                "leave --memory out"
            )
        if engine in STACKING and self.compile:
            raise UsageError(
                f"engine {engine} cannot take a model through torch.compile; "
                "leave --compile out, or use looped"
            )
        if self.tf32 and device != "cuda":
            raise UsageError(
                f"tf32 is of CUDA devices, the device is {device}; "
                "leave --tf32 out, or use --device cuda"
            )

    @classmethod
    def of(cls, asked: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return what some runs have in common.

        asked: the values of each run by its name, those of its settings and of all else that has to
        be equal. UsageError where runs differ in more than the numbers that can be swept.
        """
        (first, expected), *others = asked.items()
        for name, values in others:
            for key, value in values.items():
                if key not in (*SWEPT, *_OF_EACH) and value != expected.get(key):
                    raise UsageError(
                        f"{key.replace('_', '-')} is {expected.get(key)} for {first} and {value} "
                        f"for {name}; cells of a sweep have it in common: {list_sweepable()}"
                    )
        return cls(**{field.name: expected[field.name] for field in fields(cls)})

    def is_evaluated(self, round: int) -> bool:
        """Return whether runs are evaluated after that round. The last one always is."""
        return round % self.eval_every == 0 or round == self.rounds

    @property
    def has_clock(self) -> bool:
        """Whether the time says which rounds have a checkpoint."""
        return self.checkpoint_every is None


def is_number(value: object) -> bool:
    """Return whether a value is a place on a scale: runs side by side may differ in it."""
    return isinstance(value, Real) and not isinstance(value, bool)


def list_sweepable() -> str:
    """Return what can be swept, in words, and what goes over the rest."""
    options = ", ".join("--" + name.replace("_", "-") for name in SWEPT)
    swept = f"numbers of the algorithm and {options} can be swept"
    return f"{swept}, and a plan goes over all else: fltrain study"
