"""The numbers of a run: what holds whatever the algorithm."""

from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean, coerce


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Settings:
    """Defaults are those of Li et al., ICDE 2022, section V; weight decay is off, as in the paper's text. Each field says what it is."""

    rounds: int = _setting(50, "Communication rounds.")
    local_epochs: int = _setting(10, "Passes over a party's data in a round.")
    local_steps: int | None = _setting(None, "Steps of each party in a round, instead of epochs.")
    batch_size: int = _setting(64, "Examples in a batch; the short last batch of an epoch counts.")
    lr: float = _setting(0.01, "Learning rate of the parties.")
    momentum: float = _setting(0.9, "Momentum of the parties' SGD; starts anew each round.")
    weight_decay: float = _setting(0.0, "Weight decay of the parties' SGD.")
    lr_drops: tuple[int, ...] = _setting(
        (), "Rounds after which the learning rate is divided by 10, such as 40,80."
    )
    fraction: float = _setting(1.0, "Share of the parties that train in a round.")
    shuffle: bool = _setting(
        True,
        "A new order of examples each epoch; without it one random order, the same in all epochs.",
    )
    normalise: Literal[
        "none", "data", "half", "cifar10", "cifar100", "cifar10-fedcd", "cifar10-map", "mnist-map"
    ] = _setting(
        "none",
        "Mean taken off and deviation divided by: those of the training rows (data), or fixed ones (docs/training.md).",
    )
    crop: int = _setting(
        0,
        "Pixels that a training image is padded by on each side before a random crop of its old size.",
    )
    pad: Literal["zero", "reflect"] = _setting("zero", "What the padding of --crop holds.")
    flip: bool = _setting(False, "Training images are mirrored left to right, half of the time.")
    rotate: float = _setting(
        0.0, "Training images are turned by a random angle of up to so many degrees, either way."
    )
    noisy_test: bool = _setting(
        False, "The global test set also as each party's noise would show it."
    )
    seed: int = _setting(0, "Seed of cohorts, orders and, without --init-seed, initial weights.")
    init_seed: int | None = _setting(None, "Seed of the initial weights.")
    eval_every: int = _setting(1, "Rounds between evaluations; the last round is always evaluated.")
    checkpoint_every: int = _setting(
        1, "Rounds between checkpoints; the last round always has one."
    )
    device: Literal["auto", "cpu", "cuda"] = _setting("auto", "Where to train.")
    threads: int | None = _setting(None, "CPU threads; torch's own number if not given.")
    engine: Literal["auto", "looped", "processes", "stacked", "graph", "native"] = _setting(
        "auto",
        "How jobs run: one by one, in processes or compiled code (native) on CPU cores, or stacked on a GPU (docs/training.md). auto tells.",
    )
    workers: int | None = _setting(
        None,
        "Processes of --engine processes, threads of native; as many as there are cores if not given.",
    )
    memory: float | None = _setting(
        None,
        "GiB that --engine stacked may take for the jobs that run at once; half of the device's if not given.",
    )
    tf32: bool = _setting(False, "CUDA: products in TF32, which is faster and rounds to 10 bits.")
    bf16: bool = _setting(
        False,
        "Forward and backward passes in bfloat16 where torch's autocast allows; weights stay float32.",
    )
    compile: bool = _setting(False, "The model through torch.compile.")

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(
                self, f.name, coerce(f.name.replace("_", "-"), getattr(self, f.name), f.type)
            )
        for name in ("rounds", "local_epochs", "batch_size", "eval_every", "checkpoint_every"):
            _need(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        for name in ("local_steps", "threads", "workers"):
            value = getattr(self, name)
            _need(name, value, value is None or value >= 1, "at least 1")
        _need("lr", self.lr, self.lr > 0, "above 0")
        _need("momentum", self.momentum, 0 <= self.momentum < 1, "at least 0 and below 1")
        _need("weight_decay", self.weight_decay, self.weight_decay >= 0, "at least 0")
        _need("fraction", self.fraction, 0 < self.fraction <= 1, "above 0 and at most 1")
        _need("lr_drops", self.lr_drops, all(r >= 1 for r in self.lr_drops), "rounds, at least 1")
        _need("crop", self.crop, self.crop >= 0, "at least 0")
        _need("rotate", self.rotate, 0 <= self.rotate <= 180, "in 0..180")
        _need("memory", self.memory, self.memory is None or self.memory > 0, "above 0")
        _need("seed", self.seed, 0 <= self.seed < 1 << 63, "in 0..2**63-1")
        _need(
            "init_seed",
            self.init_seed,
            self.init_seed is None or 0 <= self.init_seed < 1 << 63,
            "in 0..2**63-1",
        )

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """Settings from names and values; ValueError with the nearest name for one that there is not."""
        names = [f.name for f in fields(cls)]
        for name in given:
            if name not in names:
                raise UsageError(f"there is no setting {name!r}; {did_you_mean(name, names)}")
        return cls(**given)

    def lr_at(self, round: int) -> float:
        """The learning rate of a round (from 1): divided by 10 after each round of lr_drops."""
        return self.lr * 0.1 ** sum(round > drop for drop in self.lr_drops)

    def is_due(self, every: int, round: int) -> bool:
        return round % every == 0 or round == self.rounds


def _need(name: str, value: object, ok: bool, what: str) -> None:
    if not ok:
        raise UsageError(f"{name.replace('_', '-')} is {value!r}; it must be {what}")
