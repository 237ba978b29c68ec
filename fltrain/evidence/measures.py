"""What a table shows of a run: a number from the metrics of its rounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from ..disk.plain_folder import PlainFolder
from ..runs.metric_names import History, find_metric, is_percentage, shorten_name
from ..runs.points import add_seconds, list_places
from ..settings.stopping import find_better_sign
from ..studies.derived_values import is_derived
from .records import RunRecord

METRIC = "test_accuracy"
BetterSide = Literal["large", "small"]
PartyModels = Literal["fine-tuned", "own", "served"]

# Whose models parties use -> how the names of their metrics begin.
MODEL_PREFIXES: Mapping[PartyModels, str] = {
    "fine-tuned": "finetuned_",
    "own": "personal_",
    "served": "",
}
AT_HOME = "party_test_accuracy"
# Name -> title, and the metric whose last value it is; of the models that a party uses at home.
_OF_PARTIES = {"parties": "mean", "worst": "worst", "p10": "p10"}
_OF_OTHERS = {
    "personal": "personal_party_test_accuracy_mean",
    "new": "new_party_test_accuracy_mean",
    "new-worst": "new_party_test_accuracy_worst",
    "new-tuned": "finetuned_new_party_test_accuracy_mean",
}
# What is derived, of which less is better, or more.
_WAYS = ("rounds:", "bytes:", "seconds:", "train_seconds")
_FASTER = ("speedup:",)
_OF_METRICS = ("last", "best", "best-round")
_COSTS = {"rounds": "rounds", "mb": "MB moved", "seconds": "seconds"}
MEASURE_NAMES = (
    "last",
    "best",
    "best-round",
    *_OF_PARTIES,
    *_OF_OTHERS,
    *_COSTS,
)
# Shown unless others are asked for, as far as some run has them.
USUAL = ("last", "rounds", "best", *_OF_PARTIES, *_OF_OTHERS, "mb")


@dataclass(frozen=True)
class RunMeasure:
    """A column of a table.

    Parameters
    ----------
    name : str
        As it is asked for.
    title : str
        What stands above the column.
    read : callable
        A run -> its number, or None.
    is_share : bool
        Whether it is shown in percent.
    is_loss : bool or None
        Whether less is better; None where nobody says.
    is_cost : bool
        Whether it is what a run took, and no result.
    is_of_parties : bool
        Whether it is of the models that parties use, which differ between algorithms.
    """

    name: str
    title: str
    read: Callable[[RunRecord], float | None]
    is_share: bool = True
    is_loss: bool | None = False
    is_cost: bool = False
    is_of_parties: bool = False


@dataclass(frozen=True)
class MeasureWords:
    """What measures are asked for.

    show: names; () for the usual ones. metrics: those of which `last` and `best` are, or what is
    derived (`rounds:accuracy=0.9`). better: which values of a metric of one's own are.
    """

    show: Sequence[str] = ()
    metrics: Sequence[str] = (METRIC,)
    better: BetterSide | None = None


Derive = Callable[[str], Mapping[str, Sequence[float]]]


def list_measures(
    words: MeasureWords, records: Sequence[RunRecord], derive: Derive
) -> list[RunMeasure]:
    """Return the columns that are asked for. UsageError for a name or metric that there is not.

    derive: what is derived -> its values by name of run.
    """
    for name in words.show:
        if name not in MEASURE_NAMES:
            raise UsageError(f"there is no measure {name!r}; {did_you_mean(name, MEASURE_NAMES)}")
    histories = [record.history for record in records if record.history]
    metrics = [_find_name(metric, histories) for metric in words.metrics]
    measures = []
    for name in words.show or _list_usual(words):
        if name not in _OF_METRICS:
            measures.append(_make_other(name))
            continue
        # Unless it is asked for, the best round of what `--metrics` adds is not shown.
        is_of_all = words.show or name == "last"
        for metric in metrics if is_of_all else [METRIC]:
            measure = _make_of_metric(name, metric, words, derive)
            measures.append(measure)
    if words.show:
        return measures
    first = measures[0]
    known = [one for one in measures[1:] if _is_known(one, records)]
    return [first, *known]


def _find_name(asked: str, histories: Sequence[History]) -> str:
    """Return what histories call a metric; accuracy also where no round was evaluated."""
    if asked == METRIC or is_derived(asked):
        return asked
    return find_metric(asked, histories)


def _list_usual(words: MeasureWords) -> list[str]:
    """Return the columns unless others are asked for; of metrics of one's own the last values."""
    usual = list(USUAL)
    if METRIC not in words.metrics:
        usual.remove("best")
    return usual


def _is_known(measure: RunMeasure, records: Sequence[RunRecord]) -> bool:
    return any(measure.read(record) is not None for record in records)


def _make_of_metric(name: str, metric: str, words: MeasureWords, derive: Derive) -> RunMeasure:
    """Return a measure that is of a metric: its last or best value, or the round of that."""
    is_loss = _find_direction(metric, words.better)
    is_share = is_percentage(metric)
    unit = " %" if is_share else ""
    short = shorten_name(metric)
    if name == "last":
        return RunMeasure(
            name=name,
            title=f"{short}{unit}",
            read=_read_last(metric, derive),
            is_share=is_share,
            is_loss=is_loss,
            is_cost=is_derived(metric) and not is_share,
        )
    if is_loss is None:
        raise UsageError(
            f"nobody says whether more or less of {short} is better, which {name} needs; "
            "give --better large or --better small"
        )
    if is_derived(metric) and name == "best-round":
        raise UsageError(
            f"{metric} is derived, and no round of its own is known; show best or last"
        )
    title = "best" if metric == METRIC else f"best {short}"
    if name == "best":
        return RunMeasure(
            name=name,
            title=f"{title}{unit}",
            read=_read_best(metric, derive, is_loss=is_loss),
            is_share=is_share,
            is_loss=is_loss,
        )
    return RunMeasure(
        name=name,
        title="at round" if metric == METRIC else f"at round, {short}",
        read=lambda record: _find_best(record, metric, is_loss)[1],
        is_share=False,
        is_loss=None,
        is_cost=True,
    )


def _read_best(
    metric: str, derive: Derive, *, is_loss: bool
) -> Callable[[RunRecord], float | None]:
    if not is_derived(metric):
        return lambda record: _find_best(record, metric, is_loss)[0]
    found = derive(metric)
    choose = min if is_loss else max
    return lambda record: choose(found[record.name]) if found.get(record.name) else None


def _read_last(metric: str, derive: Derive) -> Callable[[RunRecord], float | None]:
    if not is_derived(metric):
        return lambda record: find_last(record.history, metric)
    found = derive(metric)
    return lambda record: found[record.name][-1] if found.get(record.name) else None


def _make_other(name: str) -> RunMeasure:
    if name in _COSTS:
        return RunMeasure(
            name=name,
            title=_COSTS[name],
            read=lambda record: _count_cost(name, record),
            is_share=False,
            is_loss=True,
            is_cost=True,
        )
    title = f"{name.replace('-', ' ')} %"
    if name in _OF_OTHERS:
        metric = _OF_OTHERS[name]
        return RunMeasure(name, title, lambda record: find_last(record.history, metric))
    ending = _OF_PARTIES[name]
    return RunMeasure(
        name=name,
        title=title,
        read=lambda record: _find_at_home(record.history, ending),
        is_of_parties=True,
    )


def _find_direction(metric: str, better: BetterSide | None) -> bool | None:
    """Return whether less is better; None where nobody says."""
    if better is not None:
        return better == "small"
    if metric.startswith((*_WAYS, *_FASTER)):
        return metric.startswith(_WAYS)
    sign = find_better_sign(metric.partition("@")[0])
    return sign == "<=" if sign else None


def find_last(history: History, metric: str) -> float | None:
    """Return the value of a metric in the last round that has it."""
    for metrics in reversed(history):
        value = metrics.get(metric)
        if isinstance(value, int | float):
            return float(value)
    return None


def find_party_models(history: History) -> PartyModels | None:
    """Return whose models parties use at home; None where nothing is measured there.

    Those that they have trained further, else those of their own, else those served.
    """
    for used, prefix in MODEL_PREFIXES.items():
        if find_last(history, f"{prefix}{AT_HOME}_mean") is not None:
            return used
    return None


def _find_at_home(history: History, ending: str) -> float | None:
    used = find_party_models(history)
    if used is None:
        return None
    prefix = MODEL_PREFIXES[used]
    return find_last(history, f"{prefix}{AT_HOME}_{ending}")


def _find_best(record: RunRecord, metric: str, is_loss: bool) -> tuple[float | None, float | None]:
    """Return the best value of all rounds, and the first round that has it."""
    best: float | None = None
    its_round: float | None = None
    for metrics in record.history:
        value = metrics.get(metric)
        if not isinstance(value, int | float):
            continue
        is_better = best is None or (value < best if is_loss else value > best)
        if is_better:
            best = float(value)
            its_round = float(metrics["round"])
    return best, its_round


def _count_cost(cost: str, record: RunRecord) -> float | None:
    """Return what a run took; None where that was not written down, or nothing was done."""
    if not record.history and cost != "rounds":
        return None
    if cost == "rounds":
        return float(len(record.history))
    if cost == "mb":
        down = sum(metrics["bytes_down"] for metrics in record.history)
        up = sum(metrics["bytes_up"] for metrics in record.history)
        return float(down + up) / 1e6
    if record.folder is None:
        return None
    timed = add_seconds(record.history, PlainFolder(record.folder))
    return list_places(timed, "seconds")[-1]
