"""The first round of an algorithm on a small model: what it keeps and sends, what can train it.

All is asked of the algorithm's own functions, so no second text can say otherwise.
"""

import contextlib
import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import niidpart
from niidpart.data import Data
from niidpart.errors import UsageError

from .. import tree
from ..engine.execution import Execution
from ..engine.jobs import Broadcast, Cell, make_jobs, sort_plan
from ..engine.looped import Looped
from ..engine.native import why_not_native
from ..engine.round import CellRound, Trained, train_round
from ..engine.stacked.convolution import BEST
from ..engine.stacked.probing import probe
from ..engine.stacked.task import make_stacked_task
from ..engine.threads import use_threads
from ..interface import Algorithm, Plan, State
from ..models import Staged
from ..runs.objective import Objective
from ..runs.requests import resolve_request
from ..runs.states import make_initial_state
from ..runs.traffic import count_bytes
from ..runs.training import prepare
from ..tree import Tree

_ROUND = 1
_PARTIES, _FEATURES, _CLASSES = 2, 6, 4
_SETTINGS = {"rounds": _ROUND, "local_epochs": 1, "device": "cpu", "engine": "looped"}
_OF_MODELS = ("models", "buffers")


@dataclass(frozen=True)
class Probe:
    """What a first round showed.

    kept: what a party keeps, and of what size: model, layers, numbers or number. told, uploaded:
    what goes down and up besides models. model: bytes of one; down, up: bytes that a party moves.
    engines: those that train it.
    """

    kept: dict[str, str]
    told: list[str]
    uploaded: list[str]
    model: int
    down: int
    up: int
    engines: list[str]


@use_threads(1)
def probe_algorithm(algorithm: Algorithm) -> Probe:
    """Train a first round of two parties, and return what it showed."""
    cell = _make_cell(algorithm)
    state = make_initial_state(cell)
    kept = _describe_kept(cell, state)
    cohort = torch.arange(cell.data.n_parties)
    plan = algorithm.plan(state, cohort, _ROUND, algorithm.hyper)
    due = CellRound(cell, state, plan)
    engines = ["looped", "processes"]
    if _is_stackable(due):
        engines.append("stacked")
    if not why_not_native(cell):
        engines.append("native")
    trained = _train(due)
    moved = count_bytes(algorithm, state, trained, cell.task)
    trainable, fixed = cell.task.split_weights()
    return Probe(
        kept=kept,
        told=[] if algorithm.declared_traffic else _list_told(plan),
        uploaded=_list_uploaded(trained) if moved["bytes_party_up"] else [],
        model=tree.nbytes(trainable) + tree.nbytes(fixed),
        down=moved["bytes_party_down"],
        up=moved["bytes_party_up"],
        engines=engines,
    )


def _make_cell(algorithm: Algorithm) -> Cell:
    """Return the cell of a run that looks for nothing but what a round does."""
    data, split = _make_split()
    request = resolve_request(
        split,
        algorithm=algorithm,
        model=_make_model(),
        preset=None,
        data_root=None,
        settings=_SETTINGS | algorithm.settings,
        objective=Objective(),
    )
    return prepare([request], data, n_ranks=1).cells[0]


@functools.cache
def _make_split() -> tuple[Data, niidpart.FederatedSplit]:
    """Return a table of a few examples, dealt to parties that have validation parts."""
    x = np.random.default_rng(0).random((40, _FEATURES), dtype=np.float32)
    y = np.arange(40) % _CLASSES
    data = niidpart.from_arrays(x, y, x[:_CLASSES], y[:_CLASSES])
    return data, niidpart.make(data, "homo", n_parties=_PARTIES, val=0.2)


def _make_model() -> nn.Module:
    """Return a model that has all that algorithms ask for: stages of sigmoids, a norm, a head."""
    widen = nn.Linear(_FEATURES, 12)
    narrow = nn.Linear(12, 8)
    return Staged(
        first=nn.Sequential(nn.Flatten(), widen, nn.LayerNorm(12), nn.Sigmoid()),
        second=nn.Sequential(narrow, nn.Sigmoid()),
        head=nn.Linear(8, _CLASSES),
    )


def _train(due: CellRound) -> Trained:
    """Train the round, one job after another."""
    with contextlib.closing(Looped([due.cell], Execution())) as executor:
        outcome = train_round({0: due}, _ROUND, executor)[0]
    if not isinstance(outcome, Trained):
        raise outcome
    return outcome


def _is_stackable(due: CellRound) -> bool:
    """Return whether one small step of a job can be done for many at once."""
    cell, state = due.cell, due.state
    plan = sort_plan(due.plan, cell.data)
    jobs = make_jobs(index=0, cell=cell, state=state, plan=plan, round=_ROUND)
    broadcast = Broadcast(_ROUND, state.models, state.buffers, plan.shared)
    task = make_stacked_task(cell.task, BEST["cpu"])
    try:
        probe(cells=[cell], broadcasts={0: broadcast}, job=jobs[0], task=task, is_alone=True)
    except UsageError:
        return False
    return True


def _describe_kept(cell: Cell, state: State) -> dict[str, str]:
    """Return what each party keeps, and of what size."""
    weights, _ = cell.task.split_weights()
    sizes = {name: _describe_size(rows, weights) for name, rows in state.parties.items()}
    return {name: size for name, size in sizes.items() if size}


def _describe_size(rows: object, weights: Tree) -> str:
    """Return of what size a party's row is; "" where there is nothing in it."""
    if isinstance(rows, dict):
        if not tree.leaves(rows):
            return ""
        return "model" if rows.keys() >= weights.keys() else "layers"
    assert isinstance(rows, torch.Tensor)
    return "number" if rows[0].numel() == 1 else "numbers"


def _list_told(plan: Plan) -> list[str]:
    """Return what the server sends besides models."""
    besides = plan.shared | plan.each
    return [name for name, one in besides.items() if tree.nbytes({name: one})]


def _list_uploaded(trained: Trained) -> list[str]:
    """Return what parties send besides models."""
    names = dict.fromkeys(path.partition("/")[0] for path in trained.uploaded)
    return [name for name in names if name not in _OF_MODELS]
