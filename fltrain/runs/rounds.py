"""Round after round: train, evaluate, write down. Several runs go side by side, round by round."""

import contextlib
import importlib.util
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from ..common import Common, Execution
from ..engine import create_executor
from ..engine.announcement import announce
from ..engine.cohort import sample
from ..engine.diverged import Diverged
from ..engine.evaluation import Score, evaluate, grade_exam
from ..engine.jobs import Cell, Executor
from ..engine.precision import use_precision
from ..engine.ranks import RankLost, Ranks, Terminated, current_ranks
from ..engine.round import Trained, train_round
from ..engine.threads import use_threads
from ..interface import Plan, State
from . import curves as plot
from .folder import JSON, RunFolder
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
    """A cell on its way. folder: where the first rank writes it down, None for nowhere. state: after the rounds of `history`. over: what ended it."""

    cell: Cell
    folder: RunFolder | None
    state: State
    history: list[JSON]
    over: Diverged | None = None


@dataclass(frozen=True, eq=False)
class Rounds:
    """What watches over the rounds of some runs, which differ in nothing that decides how many rounds there are and when they are written down.

    ranks: those that train them together. The first one evaluates, writes and says how far it is; the histories of the others lack the evaluation.
    """

    runs: Sequence[Running]
    progress: OnProgress
    common: Common
    execution: Execution
    ranks: Ranks = field(default_factory=current_ranks)

    def train(self) -> None:
        """All rounds that are still to come. Lost where another rank is gone."""
        settings = self.runs[0].cell.settings
        done = len(self.runs[0].history)
        with (
            use_threads(self.execution.threads),
            use_precision(self.execution.device, self.common.tf32),
            contextlib.closing(
                create_executor([run.cell for run in self.runs], self.execution)
            ) as trains,
        ):
            if done < settings.rounds:
                line = announce(
                    [run.cell for run in self.runs],
                    [run.state for run in self.runs],
                    self.execution,
                    is_written=any(run.folder is not None for run in self.runs),
                )
                self._says(Progress(done, settings.rounds, 0, 0, None, told=line))
            for round in range(done + 1, settings.rounds + 1):
                try:
                    self._recorded(trains, round)
                except (RankLost, Terminated) as error:
                    raise RankLost(f"round {round}: {error}; {self._standing()}") from error
                except ChildProcessError as error:
                    raise ChildProcessError(f"{error}; {self._standing()}") from error
                if all(run.over for run in self.runs):
                    break
        for run in self.runs:
            if (
                self.ranks.is_first
                and run.folder is not None
                and run.history
                and importlib.util.find_spec("matplotlib")
            ):
                plot.save({run.folder.path.name: run.history}, run.folder.path / "curves.png")

    def _recorded(self, trains: Executor, round: int) -> None:
        """One round of every run that is not over, evaluated where due, its line in the history and its checkpoint on the disk."""
        began = time.perf_counter()
        outcomes = self._round(trains, round)
        seconds = time.perf_counter() - began
        for i, (run, trained) in enumerate(zip(self.runs, outcomes, strict=True)):
            if isinstance(trained, Diverged):
                run.over = trained
                if self.ranks.is_first and run.folder is not None:
                    trained.add_note(
                        f"what was reached before is kept: {run.folder.path}, checkpoint of round {run.folder.newest}"
                    )
                if len(self.runs) > 1:
                    self._says(
                        Progress(
                            round,
                            run.cell.settings.rounds,
                            0,
                            0,
                            None,
                            i,
                            f"run {i + 1} of {len(self.runs)} ends: {trained}",
                        )
                    )
            elif trained is not None:
                self._noted(i, trains, trained, round, seconds)

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
            lambda job, jobs: self._says(Progress(round, s.rounds, job, jobs, None)),
            self.ranks,
            torch.device(self.execution.device),
        )

    def _says(self, progress: Progress) -> None:
        if self.ranks.is_first:
            self.progress(progress)

    def _standing(self) -> str:
        """What is left of a run whose ranks are gone, and how to go on with it."""
        folders = [run.folder for run in self.runs if run.folder is not None]
        if not folders:
            return "nothing of it was written down, since it has no run folder"
        reached = (
            f"the checkpoint of round {folders[0].newest} stands"
            if folders[0].checkpoints()
            else "its checkpoints stand"
        )
        path = (
            folders[0].path if len(folders) == 1 else folders[0].path.parent
        )  # of a sweep the folder that holds all
        return (
            f"{reached}, and the run goes on from it on any number of ranks: fltrain resume {path}"
        )

    def _noted(
        self, i: int, trains: Executor, trained: Trained, round: int, seconds: float
    ) -> None:
        """The round of run `i`: graded, evaluated where due, written down. seconds: of training, that of all runs together."""
        began = time.perf_counter()
        run = self.runs[i]
        cell, s = run.cell, run.cell.settings
        metrics = {
            "round": round,
            "lr": s.lr_at(round),
            "jobs": len(trained.plan.party),
            "steps": trained.steps,
            "train_loss": trained.loss,
        }
        metrics |= bytes_of(cell.algorithm, run.state, trained.plan, cell.task)
        run.state = _graded(cell, trained, self.ranks, trains.score)
        if self.ranks.is_first and self.common.is_evaluated(round):
            hyper = cell.algorithm.hyper
            served = cell.algorithm.serve(run.state, hyper)
            metrics |= evaluate(cell.task, served, cell.data, trains.score)
            if cell.algorithm.personal is not None:
                own = evaluate(
                    cell.task, cell.algorithm.personal(run.state, hyper), cell.data, trains.score
                )
                metrics |= {f"personal_{name}": value for name, value in own.items()}
        metrics = _as_json(metrics, round)
        run.history.append(metrics)
        if self.ranks.is_first and run.folder is not None:
            timing = {
                "round": round,
                "train_seconds": seconds,
                "evaluate_seconds": time.perf_counter() - began,
            }
            run.folder.append(metrics, timing)
            if self.common.is_written(round):
                run.folder.save(run.state, round)
        self._says(Progress(round, s.rounds, 0, 0, metrics, i))


def _plan(run: Running, round: int) -> Plan:
    cell = run.cell
    settings, algorithm = cell.settings, cell.algorithm
    cohort = sample(cell.data.n_parties, settings.fraction, settings.seed, round)
    return algorithm.plan(run.state, cohort, round, algorithm.hyper)


def _graded(cell: Cell, trained: Trained, ranks: Ranks, score: Score) -> State:
    """The state after the exams that the algorithm asks for. Each rank examines a part of them."""
    algorithm, state = cell.algorithm, trained.state
    if algorithm.exam is None or algorithm.grade is None:
        return state
    party, model = algorithm.exam(state, trained.plan, algorithm.hyper)
    mine = ranks.share([cell.data.val.size(p) for p in party.tolist()])
    taken = grade_exam(
        cell.task, state.models, state.buffers, party[mine], model[mine], cell.data, score
    ).tolist()
    accuracy = {i: a for its in ranks.gather(list(zip(mine, taken, strict=True))) for i, a in its}
    return algorithm.grade(
        state,
        trained.plan,
        torch.tensor([accuracy[i] for i in range(len(party))], dtype=torch.float64),
        algorithm.hyper,
    )


def _as_json(metrics: JSON, round: int) -> JSON:
    """JSON has no NaN: None in its place, with a warning."""
    strange = [k for k, v in metrics.items() if isinstance(v, float) and not math.isfinite(v)]
    if strange:
        warnings.warn(
            f"round {round}: {', '.join(strange)} not finite: the model's answers overflow; try a lower learning rate",
            stacklevel=2,
        )
    return metrics | dict.fromkeys(strange)
