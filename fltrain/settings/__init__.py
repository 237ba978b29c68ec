"""The settings of a run: what holds whatever the algorithm. Needs no torch.

A file has those of one subject, each with the same names as keyword arguments for editors.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from fltrain.checkpoints.keeping import require_keep
from fltrain.schedules import Moment, Schedule, find_schedule, require_schedule
from niidpart.errors import UsageError
from niidpart.registry import Option, Registry, did_you_mean, list_names

from .engine import EngineSettings, EngineSettingValues
from .evaluation import EvaluationSettings, EvaluationSettingValues
from .exchange import ExchangeSettings, ExchangeSettingValues
from .inputs import InputSettings, InputSettingValues
from .local import LocalSettings, LocalSettingValues
from .model import ModelSettings, ModelSettingValues
from .optimizer import OptimizerSettings, OptimizerSettingValues
from .output import OutputSettings, OutputSettingValues
from .rounds import RoundSettings, RoundSettingValues, require_new_parties
from .schedule import ScheduleSettings, ScheduleSettingValues
from .stopping import StopRule, parse_stop_rule

__all__ = ["GROUPS", "SETTINGS", "SettingValues", "Settings"]

# The heading that each subject has in help.
GROUPS = {
    "Model": ModelSettings,
    "Rounds": RoundSettings,
    "Local training": LocalSettings,
    "Learning rate": ScheduleSettings,
    "Optimiser": OptimizerSettings,
    "Exchange": ExchangeSettings,
    "Inputs": InputSettings,
    "Evaluation": EvaluationSettings,
    "Engine": EngineSettings,
    "Output": OutputSettings,
}


@dataclass(frozen=True)
class Settings(
    # dataclasses take the fields of the last base first
    OutputSettings,
    EngineSettings,
    EvaluationSettings,
    InputSettings,
    ExchangeSettings,
    OptimizerSettings,
    ScheduleSettings,
    LocalSettings,
    RoundSettings,
    ModelSettings,
):
    """The settings of a run, as they are asked for, checked.

    Defaults are those of Li et al., ICDE 2022, section V; weight decay is off, as in the paper's
    text.

    Parameters
    ----------
    rounds, local_epochs, batch_size, lr, ...
        Each annotation says what its field is, and its range; `fltrain run --help` lists them all.

    Raises
    ------
    UsageError
        For a value of another type, or out of range.

    Examples
    --------
    >>> Settings(rounds=3, lr=0.1).momentum
    0.9
    """

    def __post_init__(self) -> None:
        for name, option in SETTINGS.items():
            value = getattr(self, name)
            if value is option.default:
                continue  # most of them: a plan has thousands of cells, with sixty settings each
            checked = option.check(name.replace("_", "-"), value)
            object.__setattr__(self, name, checked)
        require_keep(self.keep)
        require_new_parties(self.new_parties)
        if self.stop_at is not None:
            parse_stop_rule(self.stop_at)
        if self.lr_schedule is not None:
            require_schedule(self.lr_schedule)
        self._require_entry("optimizer", "fltrain.optimizers")
        self._require_entry("cohort", "fltrain.cohorts")
        if self.compress is not None:
            self._require_entry("compress", "fltrain.compressors")

    def _require_entry(self, setting: str, registry: str) -> None:
        """Raise UsageError for a name that there is not. Files are not imported for that.

        A file of one's own is none: an untrusted run folder could name any code.
        """
        names = list_names(registry)
        name = getattr(self, setting)
        if name not in names:
            raise UsageError(f"{setting} is {name!r}; {did_you_mean(name, names)}")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the settings of names and values.

        Parameters
        ----------
        given : mapping of str to object
            Values by the names of fields; the others have their defaults.

        Returns
        -------
        Settings

        Raises
        ------
        UsageError
            For a name that there is not, with the nearest one, and for a wrong value.

        Examples
        --------
        >>> Settings.of({"rounds": 3}).rounds
        3
        """
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                raise UsageError(f"there is no setting {name!r}; {did_you_mean(name, names)}")
        return cls(**given)

    @property
    def stop_rule(self) -> StopRule | None:
        """What ends a run before its last round; None for nothing."""
        return None if self.stop_at is None else parse_stop_rule(self.stop_at)

    @property
    def model_seed(self) -> int:
        """The seed of the initial weights."""
        return self.seed if self.init_seed is None else self.init_seed

    @property
    def schedule_name(self) -> str:
        """The schedule of the learning rate, also where none was named."""
        if self.lr_schedule is not None:
            return self.lr_schedule
        return "steps" if self.lr_drops else "constant"

    @property
    def schedule_record(self) -> Schedule:
        """What that schedule is and can do."""
        return find_schedule(self.schedule_name)

    def lr_at(self, round: int, share: float = 0.0) -> float:
        """Return the learning rate of a round, at its beginning or within it.

        Parameters
        ----------
        round : int
            From 1.
        share : float
            The part of the round's steps that a party has done; it counts with `lr_over` "steps".

        Returns
        -------
        float

        Examples
        --------
        >>> [Settings(lr=0.1, lr_drops=(2,)).lr_at(round) for round in (1, 2, 3)]
        [0.1, 0.1, 0.010000000000000002]
        """
        position = float(round - 1)
        if self.lr_over == "steps":
            position += share
        if position < self.warmup:
            # the rate after the warm-up is lr itself, and the first one is not 0
            return self.lr * (position + 1) / (self.warmup + 1)
        schedule = self.schedule_record
        numbers = {name: getattr(self, name) for name in schedule.uses}
        moment = Moment(position=position, start=self.warmup, end=self.rounds)
        return schedule.rate(self.lr, moment, **numbers)


class SettingValues(
    ModelSettingValues,
    RoundSettingValues,
    LocalSettingValues,
    ScheduleSettingValues,
    OptimizerSettingValues,
    ExchangeSettingValues,
    InputSettingValues,
    EvaluationSettingValues,
    EngineSettingValues,
    OutputSettingValues,
    total=False,
):
    """The settings as keyword arguments of `run` and `sweep`, so that editors know them.

    Examples
    --------
    >>> few: SettingValues = {"rounds": 3, "lr": 0.1}
    >>> Settings(**few).lr
    0.1
    """


# The fields as options: bare type, default, help and ranges.
SETTINGS: dict[str, Option] = Registry("fltrain", "setting").options(Settings)
