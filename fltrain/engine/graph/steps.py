"""The steps of stacks of one form, each a function of memory that stays."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ... import tree
from ...directions.affine import Affine, AffineDirection, add_terms
from ...interface import Step
from ...tree import Tree
from ..rates import Rates
from ..stacked.alike import is_same
from ..stacked.rows import select_first
from ..stacked.stack import Stack
from ..updates import Updates
from .batches import CountedBatches, Limits
from .captured import Captured, CudaCapture
from .kinds import StepKind, find_kind
from .memory import describe_form, fill, hold
from .terms import find_terms, give_no_terms, take_first
from .weights import ROW, WeightRows

_PLAIN = AffineDirection(give_no_terms)


class StaticSteps:
    """What the steps of a stack read and write, and the steps, captured as they come.

    It is made of the first stack of its form; later ones are copied into it. The functions are
    those of that stack, whose Local is moved to memory that stays.
    """

    def __init__(
        self,
        stack: Stack,
        updates: Updates,
        rates: Rates,
        *,
        limits: Limits,
        lies_in_rows: bool,
        capture: CudaCapture | None,
    ):
        """updates, rates: of the stack, before its first step. lies_in_rows: the weights."""
        self._worker = stack
        self._form = _describe(stack, updates, rates, limits)
        self._width = limits.width
        self._capture = capture
        self._captured: dict[StepKind, Captured] = {}
        n_jobs = len(stack.jobs)
        device = stack.device
        local = hold(stack.local._asdict(), device)
        self._rows: WeightRows | None = None
        self._terms: Affine | None = None
        self._in_rows: dict[str, Tree] = {}  # weights and their start
        weights = local["params"]
        if lies_in_rows:
            self._rows = WeightRows(weights)
            self._terms = find_terms(stack, self._rows)
            weights = self._lay_weights(self._rows, local)
        stack.move(stack.local._replace(**local))
        if self._terms is not None:
            stack.algorithm = replace(stack.algorithm, direction=_PLAIN)
        momentum = hold(stack.work.momentum, device)
        self._updates = Updates(
            stack.algorithm,
            stack.settings[0],
            weights=weights,
            work=stack.work._replace(momentum=momentum),
            kept={},
            is_stack=True,
        )
        before = updates.steps_before
        if isinstance(before, Tensor):
            self._updates.steps_before = before.clone()
        self._slots: Tree = {}  # as trees like the weights
        for slot, values in self._updates.slots.items():
            self._slots[slot] = values
            if self._rows is not None:
                self._slots[slot] = self._rows.cut(values[ROW])
        self._counter = torch.zeros(1, dtype=torch.int64, device=device)
        self._losses = torch.zeros(n_jobs, dtype=torch.float64, device=device)
        table = rates.tabulate()
        _, n_rates = table.shape
        self._rates = table.new_zeros(limits.steps, n_rates)
        self._batches = CountedBatches(stack.batches, limits, self._counter)

    def _lay_weights(self, rows: WeightRows, local: Tree) -> Tree:
        """Move the weights of a Local, and their start, into rows; return the rows as a tree."""
        worker = self._worker
        jobs = (len(worker.jobs),)
        axes: dict[str, tuple[int, ...]] = {"params": jobs, "start": jobs}
        if None in worker.dims.start.values():
            axes["start"] = ()  # one for all jobs
        for name, its_axes in axes.items():
            its_rows = rows.make(*its_axes)
            views = rows.cut(its_rows)
            held = local[name]
            if not views.keys() <= held.keys():
                continue  # parameters that were not received have no start
            fill(views, held)
            local[name] = held | views
            self._in_rows[name] = {ROW: its_rows}
        return self._in_rows["params"]

    def is_for(self, stack: Stack, updates: Updates, rates: Rates, limits: Limits) -> bool:
        """Return whether a stack is of this form, and within these limits."""
        return is_same(self._form, _describe(stack, updates, rates, limits))

    def run(self, stack: Stack, updates: Updates, rates: Rates) -> Tensor:
        """Do all steps of a stack of this form; return the losses [J], summed.

        Its Local and what its optimiser holds are then those that were trained.
        """
        self._fill(stack, updates, rates)
        for step in range(stack.batches.steps[0]):
            self._do_step(step)
        stack.move(self._worker.local)
        updates.slots = self._slots
        return self._losses

    def _fill(self, stack: Stack, updates: Updates, rates: Rates) -> None:
        """Take what another round brings."""
        worker = self._worker
        if stack is not worker:
            fill(worker.local._asdict(), stack.local._asdict())
            self._fill_terms(stack)
        worker.jobs = stack.jobs
        worker.batches = stack.batches
        own = self._updates
        fill(self._slots, updates.slots)
        fill(own.numbers, updates.numbers)
        fill(own.steps_before, updates.steps_before)
        for rests in own.rests.values():
            rests.zero_()
        table = rates.tabulate()
        n_steps = len(table)
        self._rates[:n_steps] = table
        self._batches.fill(stack.batches)
        self._counter.zero_()
        self._losses.zero_()

    def _fill_terms(self, stack: Stack) -> None:
        """Take the terms of another stack's direction, where it declares some."""
        if self._rows is None:
            return
        terms = find_terms(stack, self._rows)
        if terms is not None and self._terms is not None:
            fill(self._terms._asdict(), terms._asdict())

    def _do_step(self, step: int) -> None:
        worker = self._worker
        rows = worker.batches.table[step]
        if not worker.goes_together(rows):
            done = worker.direct_all(step)
            self._end_step(done, rows.n, None)
            return
        kind = find_kind(rows, len(worker.jobs), self._width, worker.mixing)
        if kind not in self._captured:
            self._captured[kind] = Captured(self._capture)
        captured = self._captured[kind]
        captured(partial(self._step, kind))

    def _step(self, kind: StepKind) -> None:
        """Do the step that the counter says, of a kind."""
        running = self._batches.mark_running(kind.n) if kind.is_ragged else None
        batch = self._batches.load(kind, running)
        done = self._worker.direct(select_first(kind.n), batch)
        self._end_step(done, kind.n, running)

    def _end_step(self, done: Step, n: int, running: Tensor | None) -> None:
        """Move the first n jobs along a direction, and the counter on. running: None for all."""
        if running is not None:
            done = self._hold_ended(done, n, running)
        rate = self._rates[self._counter]
        rate = rate.squeeze(0)  # [J], or [1] for all jobs
        lr = rate[:n] if len(rate) > 1 else rate.squeeze(0)
        counted = self._counter.squeeze(0)
        number = counted.double()  # a whole number would round to float32
        laid = self._in_weights(done, n)
        self._updates.apply(laid, number, lr, n, running=running)
        self._losses[:n] += done.loss
        self._worker.write(n, done)
        self._counter += 1

    def _in_weights(self, done: Step, n: int) -> Step:
        """Return the step with the algorithm's terms, in the form in which weights are moved."""
        if self._rows is None:
            return done
        grad = self._rows.lay("grad", done.grad, n)
        laid = done._replace(grad=grad)
        if self._terms is None:
            after = self._rows.lay("after", done.after, n)
            return laid._replace(after=after)
        weights = take_first(self._in_rows, n)
        local = self._worker.local._replace(**weights)
        terms = take_first(self._terms._asdict(), n)
        return add_terms(Affine(**terms), laid, local)

    def _hold_ended(self, done: Step, n: int, running: Tensor) -> Step:
        """Return the step with buffers, carry and loss of jobs that have ended as they were."""
        local = self._worker.local

        def choose(new: Tensor, old: Tensor) -> Tensor:
            axes = [1] * (new.dim() - 1)
            return torch.where(running.view(-1, *axes), new, old[:n])

        return done._replace(
            buffers=tree.map(choose, done.buffers, local.buffers),
            carry=tree.map(choose, done.carry, local.carry),
            loss=torch.where(running, done.loss, 0),
        )


def _describe(stack: Stack, updates: Updates, rates: Rates, limits: Limits) -> list[Any]:
    """Return what has to be equal for one memory, and one graph, to do for two stacks."""
    sources = stack.batches.sources
    table = rates.tabulate()
    return [
        len(stack.jobs),
        limits,
        stack.mixing,
        describe_form(stack.local._asdict()),
        stack.dims._asdict(),
        describe_form(updates.slots),
        describe_form(updates.numbers),
        describe_form(updates.steps_before),
        describe_form(table[0]),
        sources.distinct,
        sources.number,
    ]
