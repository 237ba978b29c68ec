"""The one way from requests to outcomes, for runs and sweeps, new and resumed."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import torch
from torch import nn

from niidpart.data import Data
from niidpart.data.of_split import load_data_of, require_data_of
from niidpart.errors import UsageError, require_type

from ..common import Common, is_number
from ..engine.auto import Choice, choose_execution
from ..engine.cost import Cost
from ..engine.jobs import Cell
from ..engine.ranks import current_ranks, require_agreement
from ..inputs.federated import Federated
from ..inputs.gathering import SharedInputs, gather_federated, open_inputs
from .cells import build_cells
from .events import OnProgress
from .folder import RunFolder
from .loop import TrainingLoop
from .opening import NewFolders, Setup, open_runs
from .outcome import Run, make_outcome
from .requests import Request
from .starting import find_common_starts, make_new_starts
from .tracking import AskedTracker, list_places, open_trackers, tell_trackers

_NOWHERE = NewFolders()


def train_alone(
    request: Request,
    data: Data | None,
    progress: OnProgress,
    *,
    new: NewFolders = _NOWHERE,
    resumed: RunFolder | None = None,
    can_go_back: bool = False,
    trackers: Sequence[AskedTracker] = (),
) -> Run:
    """Train one run, as a sweep of one. Diverged where training leaves the finite numbers.

    All is as for `train`.
    """
    (outcome,) = train(
        [request],
        data,
        progress,
        new=new,
        resumed=None if resumed is None else [resumed],
        can_go_back=can_go_back,
        trackers=trackers,
    )
    if outcome.diverged:
        raise outcome.diverged
    return outcome


def train(
    requests: Sequence[Request],
    data: Data | None,
    progress: OnProgress,
    *,
    new: NewFolders = _NOWHERE,
    resumed: Sequence[RunFolder] | None = None,
    can_go_back: bool = False,
    must_be_as_alone: bool = False,
    trackers: Sequence[AskedTracker] = (),
) -> list[Run]:
    """Train side by side what was requested: request -> cell -> state -> rounds -> outcome.

    new: where new runs are written. resumed: the folders of runs that continue, which the caller
    holds; None for new runs. can_go_back: whether these may start before damaged metrics.
    must_be_as_alone: whether runs are refused that would have another engine by themselves.
    trackers: that hear of every round.
    """
    ranks = current_ranks()
    prepared = prepare(requests, data, ranks.size)
    cells = prepared.cells
    choice = prepared.choice
    if must_be_as_alone and len(choice.picked) > 1:
        engines = ", ".join(sorted(choice.picked))
        raise UsageError(f"by themselves these runs have the engines {engines}")
    if resumed is None:
        starts = make_new_starts(cells)
    else:
        starts = find_common_starts(resumed, cells, can_go_back=can_go_back)
    require_agreement(
        ranks,
        split=", ".join(prepared.digests),
        cells=cells,
        states=[start.state for start in starts],
        execution=choice.execution,
        done=[start.rounds_done for start in starts],
    )
    setup = Setup(
        requests=requests, cells=cells, starts=starts, execution=choice.execution, ranks=ranks
    )
    with (
        open_runs(setup, resumed, new) as runs,
        open_trackers(trackers, setup, runs) as opened,
    ):
        hear = tell_trackers(opened, progress)
        TrainingLoop(runs, prepared.common, choice, hear, ranks).train()
    return [
        make_outcome(request, run, list_places(of_run))
        for request, run, of_run in zip(requests, runs, opened, strict=True)
    ]


class Prepared(NamedTuple):
    """All that runs need besides a state: the digests of their splits, and what trains them."""

    digests: list[str]
    common: Common
    cells: list[Cell]
    choice: Choice


def prepare(
    requests: Sequence[Request],
    data: Data | None,
    n_ranks: int,
    counted: dict[object, Cost] | None = None,
) -> Prepared:
    """Make of requests what is trained side by side.

    data: None to read it from where they say. counted: as of `build_cells`.
    """
    common = _share_settings(requests)
    inputs = _load_inputs(requests, data)
    cells = build_cells(requests, inputs, counted)
    choice = choose_execution(cells, common, n_ranks)
    digests = dict.fromkeys(request.split.digest for request in requests)
    return Prepared(digests=list(digests), common=common, cells=cells, choice=choice)


def _share_settings(requests: Sequence[Request]) -> Common:
    """Return what runs that go side by side have in common.

    UsageError where they differ in what all of a sweep share: how many rounds there are, when a run
    is evaluated, the algorithm, the model.
    """
    asked: dict[str, dict[str, Any]] = {}
    for request in requests:
        values = asdict(request.settings)
        values["device"] = request.device
        values["algorithm"] = request.algorithm.spec
        options = request.algorithm.options
        values |= {name: options[name] for name in options if not is_number(options[name])}
        if not isinstance(request.model, nn.Module):
            values["model"] = request.model
        asked[request.name] = values
    return Common.of(asked)


def _load_inputs(requests: Sequence[Request], data: Data | None) -> list[Federated]:
    """Return what each run trains on. What runs share lies on the device once.

    data: that of the splits; None to read it from where they say.
    """
    if data is not None:
        require_type("data", data, Data, "a data set (niidpart.load, niidpart.from_arrays)")
    opened: dict[str, SharedInputs] = {}
    gathered: dict[tuple[str, tuple[int, ...]], Federated] = {}
    inputs = []
    for request in requests:
        split, settings, held_out = request.split, request.settings, request.held_out
        digest = split.digest
        # Splits of a sweep are of one data set: what is read for the first serves the others.
        if data is None:
            data = load_data_of(split, request.data_root)
        if digest not in opened:
            require_data_of(split, data)
            opened[digest] = open_inputs(split, data, torch.device(request.device), settings)
        if (digest, held_out) not in gathered:
            gathered[digest, held_out] = gather_federated(opened[digest], settings, held_out)
        pooled = request.algorithm.pooled
        inputs.append(gathered[digest, held_out].prepare_for(settings, pooled=pooled))
    return inputs
