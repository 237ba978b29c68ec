"""`sweep` and `resume_sweep`: runs that differ in numbers train side by side as one program, each as if it were alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import nn

import niidpart
from niidpart.data import Data
from niidpart.errors import UsageError
from niidpart.hub.fetching import read_local_or_published

from ..algorithms import ALGORITHMS
from ..common import Common, Execution
from ..engine.auto import choose_execution
from ..engine.jobs import Cell
from ..engine.ranks import current_ranks, join_ranks, require_agreement, require_no_workers
from ..inputs.federated import Federated, load_federated, open_split_data
from ..interface import Algorithm, State
from . import grid as grids
from .cells import device_of, initial, preset_values
from .folder import RunFolder, appearing, read_cells, sweep_locked, write_cells
from .rounds import OnProgress, Rounds, Running
from .running import (
    Asked,
    Run,
    ask,
    kept,
    made,
    only_if_it_starts,
    outcome,
    recorded,
    taken_up,
    tell_elsewhere,
    written,
)

Split = str | Path | niidpart.FederatedSplit
Numbers = dict[str, Any]


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
    data_root: str | Path | None = None,
    progress: OnProgress = lambda _: None,
    **settings: Any,
) -> list[Run]:
    """Trains `algorithm` once for every choice of a split, a value from each list of `grid`, and a seed, all together.

    Each cell of that product is a run of its own, with the result that `fltrain.run` gives it: bit for bit with the engines looped and processes,
    to rounding with stacked (docs/training.md). All have one engine; where that is not the one that `auto` picks for a cell by itself, the run to
    compare with is one that is given this engine. `Run.cell` says which it is, such as {"mu": 0.01, "seed": 1}.

    splits: one, or several of the same data set, by name where they have one. grid: lists of numbers by name: options of the algorithm, and lr,
    momentum, weight_decay, seed, init_seed; other options and settings may stand there with one value. trials: so many seeds, from `seed` on; where
    the model is a module, whose weights no seed draws, they differ in cohorts and orders alone.
    out: a folder that will hold a run folder for each cell, None to write nothing. The rest is as for `run`. A cell that diverges ends there
    (`Run.diverged`) and the others go on. ValueError where the splits are not of the same data, and for what cannot be swept.
    """
    named = _named(splits)
    _same_data(named)
    options, lists = _lists(named, algorithm, grid or {}, trials, preset, model, settings)
    cells = grids.product(lists)
    asked = [
        _asked(named, cell, algorithm, options, model, preset, data_root, settings)
        for cell in cells
    ]
    numbers = grids.differing(cells)
    _in_step(asked, numbers)
    _different(asked)
    ranks = current_ranks()
    common = Common.of({str(i): one.settings for i, one in enumerate(asked)})
    require_no_workers(ranks, common.engine)
    ready = _made(asked, open_split_data(asked[0].split, data, data_root))
    execution = choose_execution([cell for cell, _ in ready], common, common.device)
    states = [initial(cell) for cell, _ in ready]
    require_agreement(ranks, _digests(asked), [cell for cell, _ in ready], states, execution)
    out = ranks.gather(out)[0]  # that of the first rank, which writes
    folders = _written(out, asked, ready, states, numbers, execution, first=ranks.is_first)
    runs = [
        Running(cell, folder, state, [])
        for (cell, _), folder, state in zip(ready, folders, states, strict=True)
    ]
    with kept(ranks, None if out is None else sweep_locked(out)), only_if_it_starts(ranks, out):
        Rounds(runs, progress, common, execution).train()
    return [outcome(run, n) for run, n in zip(runs, numbers, strict=True)]


@join_ranks()
def resume_sweep(
    folder: str | Path,
    data: Data | None = None,
    *,
    algorithm: Algorithm | None = None,
    model: nn.Module | None = None,
    data_root: str | Path | None = None,
    trust: bool = False,
    workers: int | None = None,
    progress: OnProgress = lambda _: None,
) -> list[Run]:
    """Goes on with all cells of a sweep together, from the newest round that they have in common; the end is that of a sweep never stopped.

    A cell that stopped earlier than the others, since it diverged or was resumed apart, is brought to its end first. The rest is as for `resume`.
    """
    cells = read_cells(folder)
    folders = [RunFolder.opened(Path(folder) / name) for name in cells]
    ranks = current_ranks()
    with kept(ranks, sweep_locked(folder)):
        asked = [recorded(one, algorithm, model, data_root, trust, workers) for one in folders]
        _in_step(asked, list(cells.values()))
        ready = _made(asked, open_split_data(asked[0].split, data, asked[0].data_root))
        common = Common.of({str(i): one.settings for i, one in enumerate(asked)})
        execution = choose_execution([cell for cell, _ in ready], common, common.device)
        tell_elsewhere(folders[0], ready[0][0].settings)
        found = [one.restore() for one in folders]
        runs: dict[int, Running] = {}
        while waiting := [i for i in range(len(folders)) if i not in runs]:
            start = min(found[i][0] for i in waiting)
            states = {
                i: found[i][1] if found[i][0] == start else folders[i].restore_at(start)
                for i in waiting
            }
            whole = {i: state for i, state in states.items() if state is not None}
            require_agreement(
                ranks,
                _digests([asked[i] for i in whole]),
                [ready[i][0] for i in whole],
                list(whole.values()),
                execution,
                [start] * len(whole),
            )
            together = {
                i: taken_up(folders[i], ready[i][0], start, state) for i, state in whole.items()
            }
            Rounds(list(together.values()), progress, common, execution).train()
            runs |= together
    return [outcome(runs[i], numbers) for i, numbers in enumerate(cells.values())]


def _named(
    splits: Split | Sequence[Split] | Mapping[str, Split],
) -> dict[str, niidpart.FederatedSplit]:
    if isinstance(splits, Mapping):
        named = dict(splits)
    else:
        several = (
            [splits] if isinstance(splits, str | Path | niidpart.FederatedSplit) else list(splits)
        )
        names = grids.split_names(
            s.digest[:8] if isinstance(s, niidpart.FederatedSplit) else str(s) for s in several
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


def _same_data(named: Mapping[str, niidpart.FederatedSplit]) -> None:
    """ValueError where two splits are of different data, or are the same."""
    (one, first), *others = named.items()
    a = first.source
    for name, other in others:
        b = other.source
        if len(a.class_names) != len(b.class_names):
            raise UsageError(
                f"the split {one} is of {a.name} with {len(a.class_names)} classes, {name} of {b.name} with {len(b.class_names)}; {_APART}"
            )
        contents = a.content_sha256 and b.content_sha256 and a.content_sha256 != b.content_sha256
        if (a.n, a.n_test, a.class_names, a.labels_sha256) != (
            b.n,
            b.n_test,
            b.class_names,
            b.labels_sha256,
        ) or contents:
            raise UsageError(
                f"the split {one} is of {a.name} ({a.n} examples), {name} is of other data, {b.name} ({b.n} examples); {_APART}"
            )
    seen: dict[str, str] = {}
    for name, split in named.items():
        if (before := seen.setdefault(split.digest, name)) != name:
            raise UsageError(f"the splits {before} and {name} are the same; give it once")


_APART = "a sweep needs splits of one data set: train these apart"


def _lists(
    named: Mapping[str, niidpart.FederatedSplit],
    algorithm: Algorithm | str,
    grid: Mapping[str, Sequence[Any]],
    trials: int,
    preset: str | None,
    model: nn.Module | str | None,
    settings: Mapping[str, Any],
) -> tuple[set[str], dict[str, list[Any]]]:
    """(the names of the algorithm's options, the lists whose product are the cells)."""
    if both := sorted(set(grid) & set(settings)):
        raise UsageError(f"{both[0]} is in the grid and beside it; give it once")
    spec = algorithm if isinstance(algorithm, str) else algorithm.spec
    options = ALGORITHMS.options(ALGORITHMS.find(spec)) if spec else {}
    kinds = grids.annotations(options)
    owned = {option.name for _, option in ALGORITHMS.all_options()}
    for name in grid:
        if name not in kinds and not spec:
            raise UsageError(
                f"the algorithm handed over has no name to build it by, so {name} cannot be swept; give the algorithm by its name"
            )
        if name not in kinds and name in owned:
            ALGORITHMS.complete(spec, {name: None})  # raises, and says whose option it is
    first = next(iter(named.values()))
    seed = settings.get(
        "seed", preset_values(preset, first, algorithm, model).settings.get("seed", 0)
    )
    lists = grids.axes(grid, trials, seed, kinds)
    return set(options), {"split": list(named)} | lists


def _asked(
    named: Mapping[str, niidpart.FederatedSplit],
    cell: Numbers,
    algorithm: Algorithm | str,
    names: set[str],
    model: nn.Module | str | None,
    preset: str | None,
    data_root: str | Path | None,
    settings: Mapping[str, Any],
) -> Asked:
    """One cell as `run` would be asked for it. names: of the algorithm's options."""
    options = {name: value for name, value in cell.items() if name in names}
    numbers = {name: value for name, value in cell.items() if name not in names and name != "split"}
    if options and not isinstance(algorithm, str):
        options = algorithm.options | options
        algorithm = algorithm.spec
    return ask(
        named[cell["split"]], algorithm, options, model, preset, data_root, dict(settings) | numbers
    )


def _in_step(asked: Sequence[Asked], numbers: Sequence[Numbers]) -> None:
    """ValueError where cells differ in what all of a sweep have in common: how many rounds there are, when a run is evaluated, the model, ..."""
    common = [
        {k: v for k, v in asdict(one.settings).items() if k not in grids.SWEPT}
        | {"algorithm": one.algorithm.spec}
        for one in asked
    ]
    common = [
        known | ({} if isinstance(one.model, nn.Module) else {"model": one.model})
        for known, one in zip(common, asked, strict=True)
    ]
    for known, which in zip(common, numbers, strict=True):
        for key, value in known.items():
            if value != common[0].get(key):
                names = grids.folder_name(numbers[0]), grids.folder_name(which)
                raise UsageError(
                    f"{key.replace('_', '-')} is {common[0].get(key)} for {names[0]} and {value} for {names[1]}; "
                    f"cells of a sweep have it in common: {grids.WHAT}"
                )


def _different(asked: Sequence[Asked]) -> None:
    """ValueError where cells would be equal: a module that is handed over brings its weights, and --init-seed draws those of models with a name."""
    seeds = list(dict.fromkeys(one.settings.init_seed for one in asked))
    if (
        len(seeds) > 1
        and isinstance(asked[0].model, nn.Module)
        and asked[0].algorithm.adapt is None
    ):
        raise UsageError(
            f"init-seed has the values {', '.join(map(str, seeds))}, and the model is a module that was handed over, whose weights no seed draws: "
            "the cells would be equal; name the model (a name, or file.py:function), or run a module for each start"
        )


def _made(asked: Sequence[Asked], data: Data) -> list[tuple[Cell, str]]:
    """Each cell and the name of its model. What a split holds is on the device once, for all its cells; all have one engine."""
    held: dict[str, Federated] = {}
    ready: list[tuple[Cell, str]] = []
    for one in asked:
        split, settings = one.split, one.settings
        if split.digest not in held:
            open_split_data(split, data, None)
            held[split.digest] = load_federated(split, data, device_of(settings), settings)
        ready.append(made(one, data, held[split.digest]))
    return ready


def _written(
    out: str | Path | None,
    asked: Sequence[Asked],
    ready: Sequence[tuple[Cell, str]],
    states: Sequence[State],
    numbers: Sequence[Numbers],
    execution: Execution,
    *,
    first: bool,
) -> list[RunFolder | None]:
    """The folders of all cells, which appear at once; None for each where nothing is written. first: this rank writes them."""
    if out is None:
        return [None] * len(ready)
    names = [grids.folder_name(n) for n in numbers]
    if first:
        with appearing(out) as new:
            for name, one, (cell, spec), state in zip(names, asked, ready, states, strict=True):
                written(new / name, one, cell, spec, state, execution)
            write_cells(new, dict(zip(names, numbers, strict=True)))
    return [RunFolder(Path(out) / name) for name in names]


def _digests(asked: Sequence[Asked]) -> str:
    return ", ".join(dict.fromkeys(one.split.digest for one in asked))
