"""The training loop: round after round, train, evaluate, write down; several runs side by side."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from niidpart.errors import FileFault, UsageError
from niidpart.splits.recipe import JSON

from ..algorithms import ALGORITHMS
from ..common import Common
from ..engine import create_executor
from ..engine.allocator import borrow_memory
from ..engine.announcement import announce
from ..engine.auto import Choice
from ..engine.diverged import Diverged
from ..engine.evaluation import grade_exam
from ..engine.jobs import Cell, Executor
from ..engine.precision import use_precision
from ..engine.ranks import RankLost, Ranks, Terminated
from ..engine.round import CellRound, Trained, train_round
from ..engine.scoring import Score
from ..engine.threads import use_threads
from ..engine.waiting import RoundWaiting
from ..interface import State
from .evaluating import evaluate_cell
from .events import Announcement, CellDiverged, JobDone, OnProgress, Preempted, Progress, RoundDone
from .finetuning import finetune
from .folder import RunFolder
from .metrics import RoundMetrics, as_metrics, replace_nan, warn_of_empty
from .planning import plan_round
from .traffic import count_bytes
from .writer import RunWriter


@dataclass(eq=False)
class RunInProgress:
    """A run while it trains.

    folder: where the run lies, and writer: what the first rank writes there with; None where
    nothing is written. state: after the rounds of `history`. diverged: the error that ended the
    run, or None. has_stopped: whether the last of these rounds reached what the run stops at.
    """

    cell: Cell
    folder: RunFolder | None
    state: State
    history: list[RoundMetrics]
    writer: RunWriter | None = None
    diverged: Diverged | None = None
    has_stopped: bool = False

    def is_due(self, round: int) -> bool:
        """Return whether that round is the next one of this run."""
        has_ended = self.has_stopped or self.diverged is not None
        return not has_ended and len(self.history) == round - 1


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """Trains runs side by side, which share all that decides when a round is due.

    ranks: those that train them together. The first one evaluates, writes and reports progress; the
    histories of the others lack the evaluation.
    """

    runs: Sequence[RunInProgress]
    common: Common
    choice: Choice
    progress: OnProgress
    ranks: Ranks

    def train(self) -> None:
        """Train all rounds that are still to come. RankLost where another rank is gone.

        A run that is behind the others catches up first.
        """
        rounds_done = min(len(run.history) for run in self.runs)
        cells = [run.cell for run in self.runs]
        execution = self.choice.execution
        with (
            use_threads(execution.threads),
            use_precision(execution.device, self.common.tf32),
            borrow_memory(),
            contextlib.closing(create_executor(cells, execution, self.ranks)) as executor,
        ):
            if rounds_done < self.common.rounds:
                self._announce(cells)
            waiting = RoundWaiting()
            for round in range(rounds_done + 1, self.common.rounds + 1):
                if any(run.is_due(round) for run in self.runs):
                    with waiting.for_round(), self._keep_on_preemption():
                        self._train_round(executor, round)

    def _announce(self, cells: Sequence[Cell]) -> None:
        # The memory of a run is counted on two examples: only for the rank that says it.
        if self.ranks.is_first:
            is_written = any(run.folder is not None for run in self.runs)
            states = [run.state for run in self.runs]
            text = announce(cells, states, self.choice, is_written=is_written)
            self.progress(Announcement(text))

    def _train_round(self, executor: Executor, round: int) -> None:
        """Train and finish a round of every run that it is due for."""
        with self._advise_on_resuming(round), _name_round(round):
            began = time.perf_counter()
            due = {
                i: self._plan_round(executor, run, round)
                for i, run in enumerate(self.runs)
                if run.is_due(round)
            }
            outcomes = train_round(
                due=due,
                round=round,
                executor=executor,
                on_job=lambda job, jobs: self._say(JobDone(round, self.common.rounds, job, jobs)),
                ranks=self.ranks,
                device=torch.device(self.choice.execution.device),
            )
            seconds = time.perf_counter() - began
            for i, outcome in outcomes.items():
                if isinstance(outcome, Diverged):
                    self._end_run(i, outcome, round)
                else:
                    self._finish_round(
                        i=i, executor=executor, trained=outcome, round=round, train_seconds=seconds
                    )

    @contextlib.contextmanager
    def _keep_on_preemption(self) -> Iterator[None]:
        """Write the checkpoints of runs that are ended between two jobs, off their turn."""
        try:
            yield
        except Preempted:
            for run in self.runs:
                reached = len(run.history)
                if run.writer is not None and run.writer.folder.newest < reached:
                    run.writer.save(run.state, reached)
            raise

    def _plan_round(self, executor: Executor, run: RunInProgress, round: int) -> CellRound:
        plan = plan_round(run.cell, run.state, round, self.ranks, executor.score)
        return CellRound(run.cell, run.state, plan)

    @contextlib.contextmanager
    def _advise_on_resuming(self, round: int) -> Iterator[None]:
        """Add to the error of a lost rank or worker what is left, and how to resume."""
        try:
            yield
        except (RankLost, Terminated) as error:
            raise RankLost(f"round {round}: {error}; {self._describe_standing()}") from error
        except ChildProcessError as error:
            raise ChildProcessError(f"{error}; {self._describe_standing()}") from error

    def _end_run(self, i: int, error: Diverged, round: int) -> None:
        """End run `i`, whose training is not finite any more."""
        run = self.runs[i]
        run.diverged = error
        if self.ranks.is_first and run.folder is not None:
            kept = f"{run.folder.path}, checkpoint of round {run.folder.newest}"
            error.add_note(f"what was reached before is kept: {kept}")
        n = len(self.runs)
        # A single run raises its error; in a sweep the others train on, so this is said at once.
        if n > 1:
            self._say(CellDiverged(round, self.common.rounds, cell=i, cells=n, cause=str(error)))

    def _finish_round(
        self,
        i: int,
        executor: Executor,
        trained: Trained,
        round: int,
        train_seconds: float,
    ) -> None:
        """Grade and evaluate run `i` after a round, and write the round down.

        train_seconds: that all runs took together.
        """
        began = time.perf_counter()
        run = self.runs[i]
        metrics = _measure_training(run, trained, round)
        run.state = _grade(run.cell, trained, self.ranks, executor.score)
        if self.ranks.is_first and self.common.is_evaluated(round):
            metrics |= evaluate_cell(run.cell, run.state, executor.score)
        run.has_stopped = self._has_reached(run, metrics)
        is_last = run.has_stopped or round == self.common.rounds
        if self.ranks.is_first and is_last and run.cell.settings.finetune:
            metrics |= finetune(run.cell, run.state, round, self.choice.execution, executor.score)
        finished = as_metrics(replace_nan(metrics, round))
        run.history.append(finished)
        if self.ranks.is_first and is_last:
            warn_of_empty([metric.name for metric in run.cell.metrics], run.history)
        if run.writer is not None:
            evaluating = time.perf_counter() - began
            timing = {
                "round": round,
                "train_seconds": train_seconds,
                "evaluate_seconds": evaluating,
            }
            # Metrics before the checkpoint. A run killed in between has metrics too many, which
            # resuming cuts off; a checkpoint whose metrics are missing could not be resumed.
            run.writer.append(finished, timing, run.state, _list_written(run.cell, trained))
            if self.common.is_written(round) or run.has_stopped:
                run.writer.save(run.state, round)
        self._say(RoundDone(round, self.common.rounds, cell=i, metrics=finished))

    def _has_reached(self, run: RunInProgress, metrics: JSON) -> bool:
        """Return whether a round ends its run: the first rank, which evaluates, tells it to all."""
        rule = run.cell.settings.stop_rule
        if rule is None:
            return False
        reached = self.ranks.is_first and rule.is_reached(metrics)
        answers: list[bool] = self.ranks.gather(reached)
        return answers[0]

    def _say(self, event: Progress) -> None:
        if self.ranks.is_first:
            self.progress(event)

    def _describe_standing(self) -> str:
        """Return what is left of runs that were ended, and how to resume them."""
        folders = [run.folder for run in self.runs if run.folder is not None]
        if not folders:
            return "nothing of it was written down, since it has no run folder"
        rounds = [folder.newest for folder in folders if folder.store.list_places()]
        reached = "its checkpoints stand"
        if rounds:
            reached = f"the checkpoint of round {min(rounds)} stands"
        paths = [folder.path for folder in folders]
        if len(paths) > 1:
            paths = [path.parent for path in paths]  # of a sweep the folder that holds all
        return (
            f"{reached}, and the run goes on from it on any number of ranks: "
            f"fltrain resume {paths.pop()}"
        )


@contextlib.contextmanager
def _name_round(round: int) -> Iterator[None]:
    """Add the round to an error that we did not raise: one of a user's own function, say."""
    try:
        yield
    except (UsageError, FileFault, OSError, RankLost):
        raise
    except Exception as error:
        error.add_note(f"in round {round}")
        raise


def _list_written(cell: Cell, trained: Trained) -> list[int] | None:
    """Return the parties whose rows a round wrote, once for each job; None if nobody knows.

    Functions of an algorithm of one's own may write to them in ways that torch does not count, such
    as `leaf.data`: what is written down must be what is there all the same.
    """
    is_ours = cell.algorithm.spec in ALGORITHMS.names()
    return trained.list_written() if is_ours else None


def _measure_training(run: RunInProgress, trained: Trained, round: int) -> JSON:
    """Return the metrics of a round's training; the run still has the state before it."""
    cell = run.cell
    metrics = {
        "round": round,
        "lr": cell.settings.lr_at(round),
        "jobs": len(trained.plan.party),
        "steps": trained.steps,
        "train_loss": trained.loss,
    }
    return metrics | count_bytes(cell.algorithm, run.state, trained, cell.task)


def _grade(cell: Cell, trained: Trained, ranks: Ranks, score: Score) -> State:
    """Return the state after the exams that the algorithm asks for.

    Each rank examines a part of them.
    """
    algorithm, state = cell.algorithm, trained.state
    if algorithm.exam is None or algorithm.grade is None:
        return state
    party, model = algorithm.exam(state, trained.plan, algorithm.hyper)
    sizes = [cell.data.val.size(p) for p in party.tolist()]
    mine = ranks.share(sizes)
    models, buffers = state.models, state.buffers
    grades = grade_exam(
        task=cell.task,
        models=models,
        buffers=buffers,
        party=party[mine],
        model=model[mine],
        data=cell.data,
        score=score,
    ).tolist()
    accuracy: dict[int, float] = {}
    # Every rank needs all grades, since each computes the whole next state.
    for of_rank in ranks.gather(list(zip(mine, grades, strict=True))):
        accuracy |= dict(of_rank)
    in_order = [accuracy[i] for i in range(len(party))]
    grades_of_all = torch.tensor(in_order, dtype=torch.float64)
    return algorithm.grade(state, trained.plan, grades_of_all, algorithm.hyper)
