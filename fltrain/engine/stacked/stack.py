"""Some jobs as one: parameters [J, ...], each step for those that are still at it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ... import tree
from ...interface import Batch, Local, Step, Work
from ...tree import Tree
from ..jobs import Cell, Given, Job, make_local
from .batches import Deal, JobPlaces
from .merging import merge_locals, merge_works
from .optimiser import step_weights
from .task import StackedTask
from .trees import as_tensors, copy_expanded, copy_into, describe_leaves, leading_axes, map_batched

vmap = torch.func.vmap


class Mixing(NamedTuple):
    """What may go together in one call of `direction`.

    padded: batches of all sizes, the shorter ones masked; else those of one size.
    epochs: jobs in any epoch; else those in one epoch.
    """

    padded: bool = False
    epochs: bool = False


class StackOutcome(NamedTuple):
    """What a stack gives. losses: [J] summed over the steps, on the host; upload, own: [J, ...]."""

    losses: list[float]
    upload: Tree
    own: Tree


class Stack:
    """Jobs sorted by steps, the longest first.

    Those still running at a step are then the first ones, and a step touches views of these alone.
    An algorithm's functions run under `torch.func.vmap`: what they are handed has an axis J where
    the jobs differ and none where they do not (`merging.py`).
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        given: Sequence[Given],
        jobs: Sequence[Job],
        task: StackedTask,
        mixing: Mixing,
    ):
        first = cells[jobs[0].cell]
        self.jobs = jobs
        self.algorithm = first.algorithm
        self.decay = first.settings.weight_decay if first.algorithm.decay == "executor" else 0.0
        self.task = task
        self.mixing = mixing
        self.deal = Deal(cells, jobs, given[jobs[0].cell].round)
        self.device = self.deal.device
        # where the examples of each job are, for `full_grad`: handed to vmap, one entry a job
        source = self.deal.tensor(self.deal.source)
        self.place = (self.deal.start, self.deal.size, source)
        self.work, self.work_dims = merge_works(jobs, self.device)
        locals_ = [make_local(cells[job.cell], given[job.cell], job) for job in jobs]
        self.local, self.dims = merge_locals(jobs, locals_, self.device)
        self._views: dict[int, tuple[Local, tuple[Tensor, ...]]] = {}

    def train(self) -> StackOutcome:
        """Train all jobs from `begin` to `finish`.

        The host waits for the device once, for the losses, after the last step.
        """
        self.begin()
        has_momentum = isinstance(self.work.momentum, Tensor) or self.work.momentum
        velocity = tree.zeros_like(self.local.params) if has_momentum else {}
        losses = torch.zeros(len(self.jobs), dtype=torch.float64, device=self.device)
        for step in range(self.deal.steps[0]):
            n = sum(steps > step for steps in self.deal.steps)  # jobs that are still at it
            parts = [self._direct_part(step, part) for part in self.parts(step, range(n))]
            done = self._join_parts(parts, n)
            step_weights(self.local.params, velocity, done, self.work, n=n, decay=self.decay)
            losses[:n] += done.loss
            self.write(n, done)
        upload, own = self.finish()
        return StackOutcome(losses.tolist(), upload, own)

    def parts(self, step: int, active: range) -> list[tuple[JobPlaces, int]]:
        """Return the jobs that go together in this step, each time with the size of their batch."""
        sizes = self.deal.sizes(step, active)
        epochs = self.deal.epochs(step, active)
        together: dict[tuple[int, int], list[int]] = {}
        for j in active:
            size = 0 if self.mixing.padded else sizes[j]
            epoch = 0 if self.mixing.epochs else epochs[j]
            together.setdefault((size, epoch), []).append(j)
        if len(together) == 1:
            return [(active, max(sizes))]  # a range: its rows are views, not copies
        return [(rows, max(sizes[j] for j in rows)) for rows in together.values()]

    def begin(self) -> None:
        """Run the algorithm's `begin`.

        Parameters, buffers and carry are then the stack's own: they are trained in place.
        """
        changed: list[str] = []

        def begin(local: Local, *place: Tensor) -> dict[str, Any]:
            out = self.algorithm.begin(self._task_at(place), local)
            for name in Local._fields:
                if getattr(out, name) is not getattr(local, name):
                    changed.append(name)
            # vmap gives all that it returns the axis J, so that what is unchanged is not returned
            return {name: as_tensors(getattr(out, name), self.device) for name in changed}

        new = vmap(begin, in_dims=(self.dims, 0, 0, 0))(self.local, *self.place)
        local = self.local._replace(**new)
        dims = self.dims._replace(**{name: leading_axes(part) for name, part in new.items()})
        trained: dict[str, Any] = {}
        for name in ("params", "buffers", "carry"):
            part, axes = getattr(local, name), getattr(dims, name)
            trained[name] = copy_expanded(part, axes, len(self.jobs))
        self.dims = dims._replace(**{name: leading_axes(part) for name, part in trained.items()})
        self.move(local._replace(**trained))

    def move(self, local: Local) -> None:
        """Go on from a Local of the same form."""
        self.local = local
        self._views = {}

    def finish(self) -> tuple[Tree, Tree]:
        """Return (upload, own) of all jobs, by the algorithm's `finish`."""

        def finish(local: Local, work: Work, *place: Tensor) -> tuple[Tree, Tree]:
            upload, own = self.algorithm.finish(self._task_at(place), local, work)
            return as_tensors(upload, self.device), as_tensors(own, self.device)

        in_dims = (self.dims, self.work_dims, 0, 0, 0)
        return vmap(finish, in_dims=in_dims)(self.local, self.work, *self.place)

    def direction(self, rows: JobPlaces, batch: Batch) -> Step:
        """Return the algorithm's `direction` of some jobs: leading axis R."""
        local, place = self._view(rows)

        def direction(local: Local, batch: Batch, *place: Tensor) -> tuple[Any, ...]:
            step = self.algorithm.direction(self._task_at(place), local, batch)
            return tuple(as_tensors(part, self.device) for part in step)

        axes: dict[str, Any] = {
            "x": 0,
            "y": 0,
            "mask": None if batch.mask is None else 0,
            "epoch": 0 if isinstance(batch.epoch, Tensor) else None,
            "step": None,
        }
        in_dims = (self.dims, Batch(**axes), 0, 0, 0)
        return Step(*vmap(direction, in_dims=in_dims)(local, batch, *place))

    def write(self, n: int, step: Step) -> None:
        """Write buffers and carry of the first n jobs; those of jobs that ended stay."""
        copy_into(self.local.buffers, step.buffers, n)
        if describe_leaves(step.carry) == describe_leaves(self.local.carry):
            copy_into(self.local.carry, step.carry, n)
        elif n == len(self.jobs):
            # all jobs are still at it, so that what they carry from here on may be another tree
            carry = copy_expanded(step.carry, leading_axes(step.carry), n)
            self.dims = self.dims._replace(carry=leading_axes(carry))
            self.move(self.local._replace(carry=carry))
        else:
            before, now = (sorted(tree.flatten(one)) for one in (self.local.carry, step.carry))
            raise UsageError(
                f"{self.algorithm.name}: direction returned carry {now} after {before}; "
                "stacked jobs must carry the same from the first step on: return the same keys, "
                "or use --engine looped or processes"
            )

    def _direct_part(self, step: int, part: tuple[JobPlaces, int]) -> tuple[JobPlaces, Step]:
        """Return the direction of a part with its jobs; an error says which party was in it."""
        rows, width = part
        try:
            return rows, self.direction(rows, self.deal.take(step, rows, width))
        except ValueError as error:
            first = min(rows, key=lambda j: (self.jobs[j].cell, self.jobs[j].party))
            error.add_note(
                f"that was party {self.jobs[first].party}, of {self.deal.n[first]} examples, "
                f"in batches of {self.deal.batch_size}"
            )
            raise

    def _join_parts(self, parts: list[tuple[JobPlaces, Step]], n: int) -> Step:
        """Return the parts of a step of n jobs as one, [n, ...]."""
        if len(parts) == 1:
            return parts[0][1]

        def join(*leaves: Tensor) -> Tensor:
            out = leaves[0].new_empty(n, *leaves[0].shape[1:])
            for (rows, _), leaf in zip(parts, leaves, strict=True):
                assert isinstance(rows, list)  # a range is all jobs, and then there is one part
                out[self.deal.at(rows)] = leaf
            return out

        # under one key: `loss` is a leaf, and `tree.map` takes dicts
        first, *others = [{"step": step._asdict()} for _, step in parts]
        return Step(**tree.map(join, first, *others)["step"])

    def _task_at(self, place: tuple[Tensor, ...]) -> StackedTask:
        """Return the task with the examples of the job at hand, which vmap knows by its place."""
        start, size, source = place
        return replace(self.task, examples=lambda: self.deal.in_order(start, size, source))

    def _view(self, rows: JobPlaces) -> tuple[Local, tuple[Tensor, ...]]:
        """Return what these jobs are handed.

        Views of the first n jobs are made once and hold until n changes: their number falls seldom.
        """
        if isinstance(rows, range) and len(rows) in self._views:
            return self._views[len(rows)]
        parts = [
            map_batched(part, dims, lambda leaf: self.deal.of(leaf, rows))
            for part, dims in zip(self.local, self.dims, strict=True)
        ]
        places = tuple(self.deal.of(place, rows) for place in self.place)
        view = Local(*parts), places
        if isinstance(rows, range):
            self._views = {len(rows): view}
        return view
