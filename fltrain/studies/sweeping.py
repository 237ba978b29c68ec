"""The door to small plans: `sweep` trains all cells of one side by side, in this process.

Its plan is Python's own: splits, algorithms and models may be objects, for which a file has no
words, and no other process could take a cell up. So its runs lie in a folder without claims
(`runs/sweep_folder`), and `fltrain resume` goes on with them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from torch import nn

import niidpart
from niidpart.data import Data
from niidpart.errors import UsageError
from niidpart.hub.fetching import read_local_or_published

from ..common import SEEDS, list_sweepable
from ..engine.ranks import join_ranks
from ..interface import Algorithm
from ..runs.events import OnProgress, ignore
from ..runs.grid import name_splits
from ..runs.initial_weights import InitFrom, read_initial_weights
from ..runs.objective import AskedMetrics
from ..runs.opening import NewFolders
from ..runs.outcome import Run
from ..runs.requests import Request, Split, resolve_preset
from ..runs.tracking import Track, resolve_trackers
from ..runs.training import train
from ..settings import SETTINGS, SettingValues
from ..tasks.losses import OwnFunction
from .cells.cell_requests import look_up
from .cells.split_data import describe_data, is_same_data
from .plans.expansion import expand_plan
from .plans.plan import StudyPlan, read_plan
from .plans.plan_checks import RUN_WORDS
from .plans.plan_text import PlanText
from .plans.plan_values import check_values, list_values
from .plans.split_words import make_split
from .plans.variants import OWN_WORDS, list_options

Splits = Mapping[str, niidpart.FederatedSplit]


@join_ranks()
def sweep(
    splits: Split | Sequence[Split] | Mapping[str, Split],
    data: Data | None = None,
    *,
    algorithm: Algorithm | str = "fedavg",
    grid: Mapping[str, Sequence[Any]] | None = None,
    trials: int = 1,
    out: str | Path | None = None,
    model: nn.Module | str | None = None,
    preset: str | None = None,
    init_from: InitFrom = None,
    init_from_partial: bool = False,
    loss: str | OwnFunction | None = None,
    metrics: AskedMetrics = (),
    data_root: str | Path | None = None,
    progress: OnProgress = ignore,
    track: Track = (),
    **settings: Unpack[SettingValues],
) -> list[Run]:
    """Train an algorithm for every choice of a split, numbers and a seed, all together.

    Each cell of that product is a run of its own, with the result that `run` gives it: bit for bit
    with the engines looped and processes, to rounding with stacked (docs/training.md). All have one
    engine; where that is not the one that `auto` picks for a cell by itself, the run to compare
    with is one that is given this engine.

    Parameters
    ----------
    splits : path, str, FederatedSplit, or several
        One, or several of the same data set, by name where they have one.
    data : Data, optional
        As for `run`; so are `algorithm`, `model`, `preset`, `init_from`, `init_from_partial`,
        `loss`, `metrics`, `data_root`, `progress`, `track`, `settings`.
    grid : mapping of str to list
        Numbers by name: options of the algorithm, and lr, momentum, weight_decay, seed, init_seed.
        Other options and settings may stand there with one value.
    trials : int
        So many seeds, from `seed` on. Where the model is a module, whose weights no seed draws,
        they differ in cohorts and orders alone.
    out : path, optional
        A folder that will hold a run folder for each cell; None to write nothing.

    Returns
    -------
    list of Run
        `Run.cell` says which each one is, {"mu": 0.01, "seed": 1}. One that diverged ended there
        (`Run.diverged`), and the others went on.

    Raises
    ------
    UsageError
        Where the splits are not of the same data, and for what cannot be swept.

    Examples
    --------
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5, seed=0)
    >>> [run.cell for run in sweep(split, grid={"lr": [0.1, 0.01]}, rounds=1, local_epochs=1)]
    [{'lr': 0.1}, {'lr': 0.01}]
    """
    trackers = resolve_trackers(track)
    words = {
        "model": model,
        "preset": preset,
        "data_root": data_root,
        "loss": loss,
        "metrics": metrics,
    }
    cells = plan_sweep(_read_splits(splits), algorithm, grid or {}, trials, words, settings)
    weights = read_initial_weights(init_from, init_from_partial)
    requests = [replace(cell, weights=weights) for cell in cells]
    names = [request.name for request in requests]
    if out is not None:
        _require_folder_names(names)
    new = NewFolders.of_sweep(out, names)
    return train(requests, data, progress, new=new, trackers=trackers)


def plan_sweep(
    splits: Splits,
    algorithm: Algorithm | str,
    grid: Mapping[str, Any],
    trials: int,
    words: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> list[Request]:
    """Return the requests of the cells of a plan that has splits, a grid and trials.

    words, settings: what `fltrain.run` takes, the same for all.
    """
    _require_one_data(splits)
    both = sorted(set(grid) & set(settings))
    if both:
        raise UsageError(f"{both[0]} is in the grid and beside it; give it once")
    _check_grid(grid)
    seed = settings.get("seed")
    if seed is None:  # that of a run, which a preset may set
        first = next(iter(splits.values()))
        preset = resolve_preset(words["preset"], first, algorithm, words["model"])
        seed = preset.settings.get("seed", 0)
    requests, numbers = [], []
    for one in expand_plan(_write_plan(splits, algorithm, grid, trials, seed)):
        own = dict(one.settings)
        if "init_seed" in grid:  # written down also where it is the seed of the order
            own["init_seed"] = one.where["init_seed"]
        request = look_up(
            split=make_split(one.split, {}),
            algorithm=one.algorithm,
            options=one.options,
            words=words,
            settings={**settings, **own},
        )
        told = {"split": one.where["split"]}
        told |= {name: request.algorithm.options[name] for name in one.options}
        told |= {name: getattr(request.settings, name) for name in own}
        requests.append(request)
        numbers.append(told)
    _require_different(requests)
    each = zip(requests, numbers, strict=True)
    return [replace(one, numbers=_leave_out_common(told, numbers)) for one, told in each]


def _write_plan(
    splits: Splits, algorithm: Algorithm | str, grid: Mapping[str, Any], trials: int, seed: int
) -> StudyPlan:
    """Return the plan of a sweep. seed: of the first trial, where the grid has none."""
    spec = algorithm if isinstance(algorithm, str) else algorithm.spec
    known = [*list_options(spec), *SETTINGS]
    words = sorted(grid, key=lambda word: known.index(word) if word in known else len(known))
    axes = {word: grid[word] for word in words if word in SETTINGS and word not in SEEDS}
    own = {word: grid[word] for word in words if word not in SETTINGS}
    values = {
        "name": "sweep",
        "algorithms": [{"name": algorithm, **own}],
        "splits": [{"name": name, "file": split} for name, split in splits.items()],
        "axes": axes,
        "seeds": {"init": grid["init_seed"]} if "init_seed" in grid else {},
        "trials": trials,
    }
    plan = read_plan(PlanText(values))
    seeds = list_values(grid.get("seed", seed), SETTINGS["seed"])
    check_values("seed", seeds)
    if trials > 1:
        if len(seeds) > 1:
            raise UsageError(
                f"{trials} trials and {len(seeds)} seeds were asked for; "
                "give one seed, from which the trials count, or the seeds alone"
            )
        seeds = [seeds[0] + trial for trial in range(trials)]
    return replace(plan, groups=[replace(group, trials=seeds) for group in plan.groups])


def _check_grid(grid: Mapping[str, Any]) -> None:
    """Raise UsageError for what is no list, and for words of a plan that are no setting."""
    for word, values in grid.items():
        if word in (*RUN_WORDS, *OWN_WORDS):
            raise UsageError(f"{word} cannot stand in the grid: {list_sweepable()}")
        if not isinstance(values, list | tuple | range) or not len(values):
            raise UsageError(
                f"the grid has {values!r} for {word}; it must be a list of at least one value"
            )


def _leave_out_common(
    told: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return by what a cell differs from some other; that of a plan of one is its seed."""
    if len(cells) == 1:
        return {"seed": told["seed"]}
    return {
        name: value for name, value in told.items() if any(cell[name] != value for cell in cells)
    }


def _read_splits(splits: Split | Sequence[Split] | Mapping[str, Split]) -> Splits:
    """Return the splits by name."""
    if isinstance(splits, Mapping):
        named = dict(splits)
    else:
        if isinstance(splits, str | Path | niidpart.FederatedSplit):
            splits = [splits]
        several = list(splits)
        names = name_splits(
            split.digest[:8] if isinstance(split, niidpart.FederatedSplit) else str(split)
            for split in several
        )
        named = dict(zip(names, several, strict=True))
    if not named:
        raise UsageError("there is no split; a sweep needs at least one")
    return {
        name: split
        if isinstance(split, niidpart.FederatedSplit)
        else read_local_or_published(split)
        for name, split in named.items()
    }


def _require_one_data(splits: Splits) -> None:
    """Raise UsageError where two splits are of different data, or are the same."""
    (first, split), *others = splits.items()
    for name, other in others:
        if not is_same_data(split.source, other.source):
            raise UsageError(
                f"the split {first} is of {describe_data(split.source)}, {name} is of other data, "
                f"{describe_data(other.source)}; a sweep needs splits of one data set: train these "
                "apart, or write a plan that says which data each is of (fltrain study)"
            )
    seen: dict[str, str] = {}
    for name, split in splits.items():
        before = seen.setdefault(split.digest, name)
        if before != name:
            raise UsageError(f"the splits {before} and {name} are the same; give it once")


def _require_folder_names(names: Sequence[str]) -> None:
    """Raise UsageError for a name that no folder can have, as that of a split may make it."""
    for name in names:
        if Path(name).name != name or "\0" in name:
            raise UsageError(
                f"a run of the sweep would have the folder {name!r}, a name that no folder can "
                "have; give its split a name without /, or give no out"
            )


def _require_different(requests: Sequence[Request]) -> None:
    """Raise UsageError where cells would be equal.

    A module that is handed over brings its weights, and --init-seed draws those of models with a
    name.
    """
    modules = [request for request in requests if isinstance(request.model, nn.Module)]
    seeds = list(dict.fromkeys(r.settings.init_seed for r in modules if r.algorithm.adapt is None))
    if len(seeds) > 1:
        raise UsageError(
            f"init-seed has the values {', '.join(map(str, seeds))}, "
            "and the model is a module that was handed over, whose weights no seed draws: "
            "the cells would be equal; name the model (a name, or file.py:function), "
            "or run a module for each start"
        )
