"""Round after round: train, evaluate, write down. Several runs go side by side, round by round."""

import contextlib
import importlib.util
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from . import plot
from .engine import executor
from .engine.cohort import sample
from .engine.diverged import Diverged
from .engine.evaluate import evaluate, exam
from .engine.jobs import Cell, Executor
from .engine.precision import precision
from .engine.round import Trained, train_round
from .interface import Plan, State
from .store import JSON, RunFolder
from .traffic import bytes_of


class Progress(NamedTuple):
    """Where a run stands: job `job` of `jobs` in round `round` of `rounds` is done; metrics once the whole round is, of the cell with that number.

    told: what the run has to say, once, before its first round.
    """

    round: int
    rounds: int
    job: int
    jobs: int
    metrics: JSON | None
    cell: int = 0
    told: str = ""


OnProgress = Callable[[Progress], None]


@dataclass(eq=False)
class Running:
    """A cell on its way. folder: where it is written down, None for nowhere. state: after the rounds of `history`. over: the error that ended it."""

    cell: Cell
    folder: RunFolder | None
    state: State
    history: list[JSON]
    over: Diverged | None = None


@dataclass(frozen=True, eq=False)
class Rounds:
    """What watches over the rounds of some runs, which differ in nothing that decides how many rounds there are and when they are written down."""

    runs: Sequence[Running]
    progress: OnProgress

    def train(self) -> None:
        """All rounds that are still to come."""
        settings = self.runs[0].cell.settings
        done = len(self.runs[0].history)
        with _threads(settings.threads), precision(settings), contextlib.closing(executor([run.cell for run in self.runs])) as trains:
            for round in range(done + 1, settings.rounds + 1):
                self._recorded(trains, round)
                if all(run.over for run in self.runs):
                    break
        for run in self.runs:
            if run.folder is not None and run.history and importlib.util.find_spec("matplotlib"):
                plot.save({run.folder.path.name: run.history}, run.folder.path / "curves.png")

    def _recorded(self, trains: Executor, round: int) -> None:
        """One round of every run that is not over, evaluated where due, its line in the history and its checkpoint on the disk."""
        began = time.perf_counter()
        outcomes = self._round(trains, round)
        seconds = time.perf_counter() - began
        for i, (run, trained) in enumerate(zip(self.runs, outcomes, strict=True)):
            if isinstance(trained, Diverged):
                run.over = trained
                if run.folder is not None:
                    trained.add_note(f"what was reached before is kept: {run.folder.path}, checkpoint of round {run.folder.newest}")
            elif trained is not None:
                self._noted(i, run, trained, round, seconds)

    def _round(self, trains: Executor, round: int) -> list[Trained | Diverged | None]:
        """What each run's round gave; None for one that is over."""
        s = self.runs[0].cell.settings
        plans = [None if run.over else _plan(run, round) for run in self.runs]
        return train_round(
            [run.cell for run in self.runs],
            [run.state for run in self.runs],
            plans,
            round,
            trains,
            lambda job, jobs: self.progress(Progress(round, s.rounds, job, jobs, None)),
        )

    def _noted(self, i: int, run: Running, trained: Trained, round: int, seconds: float) -> None:
        """A run's round: graded, evaluated where due, written down. seconds: of training, that of all runs together."""
        began = time.perf_counter()
        cell, s = run.cell, run.cell.settings
        metrics = {"round": round, "lr": s.lr_at(round), "jobs": len(trained.plan.party), "steps": trained.steps, "train_loss": trained.loss}
        metrics |= bytes_of(cell.algorithm, run.state, trained.plan, cell.task)
        run.state = _graded(cell, trained)
        if s.is_due(s.eval_every, round):
            metrics |= evaluate(cell.task, cell.algorithm.serve(run.state), cell.data)
            if cell.algorithm.personal is not None:
                metrics |= {f"personal_{name}": value for name, value in evaluate(cell.task, cell.algorithm.personal(run.state), cell.data).items()}
        metrics = _as_json(metrics, round)
        run.history.append(metrics)
        if run.folder is not None:
            timing = {"round": round, "train_seconds": seconds, "evaluate_seconds": time.perf_counter() - began}
            run.folder.append(metrics, timing)
            if s.is_due(s.checkpoint_every, round):
                run.folder.save(run.state, round)
        self.progress(Progress(round, s.rounds, 0, 0, metrics, i))


def _plan(run: Running, round: int) -> Plan:
    cell = run.cell
    return cell.algorithm.plan(run.state, sample(cell.data.n_parties, cell.settings.fraction, cell.settings.seed, round), round)


def _graded(cell: Cell, trained: Trained) -> State:
    """The state after the exams that the algorithm asks for."""
    algorithm, state = cell.algorithm, trained.state
    if algorithm.exam is None or algorithm.grade is None:
        return state
    party, model = algorithm.exam(state, trained.plan)
    return algorithm.grade(state, trained.plan, exam(cell.task, state.models, state.buffers, party, model, cell.data))


def _as_json(metrics: JSON, round: int) -> JSON:
    """JSON has no NaN: None in its place, with a warning."""
    strange = [k for k, v in metrics.items() if isinstance(v, float) and not math.isfinite(v)]
    if strange:
        warnings.warn(f"round {round}: {', '.join(strange)} not finite: the model's answers overflow; try a lower learning rate", stacklevel=2)
    return metrics | dict.fromkeys(strange)


@contextlib.contextmanager
def _threads(n: int | None) -> Iterator[None]:
    """n CPU threads for torch, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(n or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
