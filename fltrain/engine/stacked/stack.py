"""Some jobs as one: parameters [J, ...], each step for the jobs that still run."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ... import tree
from ...interface import Batch, Local, Step, Work
from ...tree import Tree
from ..drift import copy_measured, subtract_weights
from ..jobs import Broadcast, Cell, Job, make_local
from ..rates import Rates
from ..updates import OPTIMIZER, Updates
from .batches import StackedBatches
from .merging import find_batch_dims, merge_locals, merge_works
from .mixing import Mixing
from .rows import StackRows, select_first
from .table import StepRows
from .task import StackedTask
from .trees import (
    as_tensors,
    copy_expanded,
    copy_into,
    describe_leaves,
    leading_axes,
    map_batched,
    stack_trees,
)

vmap = torch.func.vmap

# Where the examples of each job are, for `full_grad`: start, size and number of the source, [J]
# each, of which vmap shows a job its own numbers.
_Where = tuple[Tensor, ...]
_PLACE_DIMS = (0, 0, 0)


class StackOutcome(NamedTuple):
    """What a stack gives. losses: [J] summed over the steps; else [J, ...], moved {} for none."""

    losses: Tensor
    upload: Tree
    own: Tree
    moved: Tree


class _StackPart(NamedTuple):
    """Jobs that go together in one step, by one call. width: examples of the largest batch."""

    rows: StackRows
    width: int


class Stack:
    """Jobs sorted by steps, the longest first.

    Those that still run at a step are then the first ones, and a step touches views of these alone.
    An algorithm's functions run under `torch.func.vmap`: their arguments have an axis J where the
    jobs differ and none where they do not (`merging.py`). A function `*_job` within a method is
    what vmap runs: it sees one job.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        broadcasts: Mapping[int, Broadcast],
        jobs: Sequence[Job],
        task: StackedTask,
        mixing: Mixing,
    ):
        self.cells = cells
        self.jobs = jobs
        self.algorithm = cells[jobs[0].cell].algorithm
        self.settings = [cells[job.cell].settings for job in jobs]
        self.task = task
        self.mixing = mixing
        self.round = broadcasts[jobs[0].cell].round
        self.batches = StackedBatches(cells, jobs, self.round)
        self.device = self.batches.device
        source = self.batches.tensor(self.batches.sources.number)
        self.place: _Where = (self.batches.start, self.batches.size, source)
        self.work, self.work_dims = merge_works(jobs, self.device)
        locals_ = []
        for job in jobs:
            local = make_local(cells[job.cell], broadcasts[job.cell], job)
            locals_.append(local)
        self.local, self.dims = merge_locals(jobs, locals_, self.device)
        self.begun: Tree = {}  # the weights before the first step, where they are measured
        # of the first n jobs, by n
        self._first_jobs: dict[int, tuple[Local, _Where]] = {}

    def train(self) -> StackOutcome:
        """Train all jobs from `begin` to `finish`. The host reads nothing of the device's."""
        self.begin()
        updates, rates = self.prepare_updates()
        losses = torch.zeros(len(self.jobs), dtype=torch.float64, device=self.device)
        for step in range(self.batches.steps[0]):
            n = self.batches.table[step].n  # jobs that still run
            done = self.direct_all(step)
            updates.apply(done, step, rates.at(step, n), n)
            losses[:n] += done.loss
            self.write(n, done)
        return self.end(updates, losses)

    def end(self, updates: Updates, losses: Tensor) -> StackOutcome:
        """Return the outcome, behind the last step."""
        upload, own = self.finish()
        if self.jobs[0].optimizer:
            own = own | {OPTIMIZER: updates.keep(self.work.steps)}
        moved = subtract_weights(self.local.params, self.begun) if self.begun else {}
        return StackOutcome(losses, upload, own, moved)

    def prepare_updates(self) -> tuple[Updates, Rates]:
        """Return the optimiser of all jobs, and the learning rates of their steps."""
        updates = Updates(
            self.algorithm,
            self.settings[0],
            weights=self.local.params,
            work=self.work,
            kept=stack_trees([job.optimizer for job in self.jobs]),
            is_stack=True,
        )
        rates = Rates(
            self.settings,
            self.batches.steps,
            work=self.work,
            round=self.round,
            device=self.device,
        )
        return updates, rates

    def begin(self) -> None:
        """Run the algorithm's `begin`.

        Parameters, buffers and carry are then the stack's own: they are trained in place.
        """
        # vmap gives all that it returns the axis J, so that the function returns only what the
        # algorithm has changed, and notes here which parts these are
        changed: list[str] = []

        def begin_job(local: Local, *place: Tensor) -> dict[str, Any]:
            out = self.algorithm.begin(self._bind_examples(place), local)
            for name in Local._fields:
                if getattr(out, name) is not getattr(local, name):
                    changed.append(name)
            return {name: as_tensors(getattr(out, name), self.device) for name in changed}

        begin_all = vmap(begin_job, in_dims=(self.dims, *_PLACE_DIMS))
        new = begin_all(self.local, *self.place)
        new_dims = {name: leading_axes(part) for name, part in new.items()}
        local = self.local._replace(**new)
        self._own_trained_parts(local, self.dims._replace(**new_dims))
        self.begun = copy_measured(self.local.params, self.jobs)

    def _own_trained_parts(self, local: Local, dims: Local) -> None:
        """Go on from this Local, with copies [J, ...] of the parts that are trained in place."""
        trained: dict[str, Any] = {}
        trained_dims: dict[str, Any] = {}
        for name in ("params", "buffers", "carry"):
            part = getattr(local, name)
            part_dims = getattr(dims, name)
            trained[name] = copy_expanded(part, part_dims, len(self.jobs))
            trained_dims[name] = leading_axes(trained[name])
        self.dims = dims._replace(**trained_dims)
        self.move(local._replace(**trained))

    def move(self, local: Local) -> None:
        """Go on from a Local of the same form."""
        self.local = local
        self._first_jobs = {}

    def finish(self) -> tuple[Tree, Tree]:
        """Return (upload, own) of all jobs, by the algorithm's `finish`."""

        def finish_job(local: Local, work: Work, *place: Tensor) -> tuple[Tree, Tree]:
            task = self._bind_examples(place)
            upload, own = self.algorithm.finish(task, local, work)
            return as_tensors(upload, self.device), as_tensors(own, self.device)

        in_dims = (self.dims, self.work_dims, *_PLACE_DIMS)
        finish_all = vmap(finish_job, in_dims=in_dims)
        return finish_all(self.local, self.work, *self.place)

    def direct(self, rows: StackRows, batch: Batch) -> Step:
        """Return the algorithm's `direction` of R jobs, [R, ...]; an error names one's party."""

        def direct_job(local: Local, batch: Batch, *place: Tensor) -> tuple[Any, ...]:
            task = self._bind_examples(place)
            step = self.algorithm.direction(task, local, batch)
            return tuple(as_tensors(part, self.device) for part in step)

        local, place = self._select(rows)
        in_dims = (self.dims, find_batch_dims(batch), *_PLACE_DIMS)
        direct_all = vmap(direct_job, in_dims=in_dims)
        try:
            return Step(*direct_all(local, batch, *place))
        except ValueError as error:
            error.add_note(self._describe_batches(rows))
            raise

    def direct_all(self, step: int) -> Step:
        """Return the direction of the jobs that still run, [n, ...], by a call for each part."""
        n = self.batches.table[step].n
        parts = self._divide(step)
        steps = [self._direct_part(step, part) for part in parts]
        if len(parts) == 1:
            return steps[0]
        indices = [self.batches.selector.index(part.rows.places) for part in parts]

        def join(*leaves: Tensor) -> Tensor:
            out = leaves[0].new_empty(n, *leaves[0].shape[1:])
            for index, leaf in zip(indices, leaves, strict=True):
                out[index] = leaf
            return out

        # under one key: `loss` is a leaf, and `tree.map` takes dicts
        first, *others = [{"step": part_step._asdict()} for part_step in steps]
        joined = tree.map(join, first, *others)
        return Step(**joined["step"])

    def _divide(self, step: int) -> list[_StackPart]:
        """Return the parts of the jobs that still run which `mixing` lets go together."""
        rows = self.batches.table[step]
        every = select_first(rows.n)
        if self.goes_together(rows):
            return [_StackPart(every, rows.widest)]
        sizes = self.batches.sizes(step, every)
        epochs = self.batches.epochs(step, every)
        together: dict[tuple[int, int], list[int]] = {}
        for j in range(rows.n):
            size = 0 if self.mixing.padded else sizes[j]
            epoch = 0 if self.mixing.epochs else epochs[j]
            together.setdefault((size, epoch), []).append(j)
        parts = []
        for some in together.values():
            width = max(sizes[j] for j in some)
            parts.append(_StackPart(self.batches.selector.select(some), width))
        return parts

    def goes_together(self, rows: StepRows) -> bool:
        """Return whether `mixing` lets all jobs of a step go together."""
        is_of_one_width = self.mixing.padded or rows.are_equal
        return is_of_one_width and (self.mixing.epochs or rows.are_in_one_epoch)

    def _direct_part(self, step: int, part: _StackPart) -> Step:
        batch = self.batches.load(step, *part)
        return self.direct(part.rows, batch)

    def _describe_batches(self, rows: StackRows) -> str:
        """Return which party is among some jobs, and what its batches are."""
        first = min(rows.places, key=lambda j: (self.jobs[j].cell, self.jobs[j].party))
        job = self.jobs[first]
        return self.cells[job.cell].describe_batches(job.party)

    def write(self, n: int, step: Step) -> None:
        """Write buffers and carry of the first n jobs; those of jobs that ended stay."""
        copy_into(self.local.buffers, step.buffers, n)
        if describe_leaves(step.carry) == describe_leaves(self.local.carry):
            copy_into(self.local.carry, step.carry, n)
        elif n == len(self.jobs):
            # all jobs still run, so that what they carry from here on may be another tree
            carry = copy_expanded(step.carry, leading_axes(step.carry), n)
            self.dims = self.dims._replace(carry=leading_axes(carry))
            self.move(self.local._replace(carry=carry))
        else:
            before = sorted(tree.flatten(self.local.carry))
            now = sorted(tree.flatten(step.carry))
            raise UsageError(
                f"{self.algorithm.name}: direction returned carry {now} after {before}; "
                "stacked jobs must carry the same from the first step on: return the same keys, "
                "or use --engine looped or processes"
            )

    def _bind_examples(self, place: _Where) -> StackedTask:
        """Return the task with the examples of the job that vmap shows by its place."""
        return self.task.bind_examples(partial(self.batches.iterate_in_order, *place))

    def _select(self, rows: StackRows) -> tuple[Local, _Where]:
        """Return Local and place of these jobs.

        Views of the first n jobs are made once and hold until n changes: their number falls seldom.
        """
        n = len(rows.places)
        if rows.are_first and n in self._first_jobs:
            return self._first_jobs[n]
        parts = []
        for part, dims in zip(self.local, self.dims, strict=True):
            parts.append(map_batched(part, dims, rows.select))
        place = tuple(rows.select(numbers) for numbers in self.place)
        selected = Local(*parts), place
        if rows.are_first:
            self._first_jobs = {n: selected}
        return selected
