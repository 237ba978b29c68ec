"""Some jobs as one: parameters [J, ...], each step for those that are still at it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from niidpart.errors import UsageError

from ... import tree
from ...draws import signed
from ...interface import Batch, Local, Step, Work
from ...tree import Tree
from ..jobs import Cell, Given, Job, local_of
from .batches import Deal, JobPlaces
from .task import StackedTask
from .trees import (
    align_axes,
    as_tensors,
    copy_expanded,
    copy_into,
    describe_form,
    leading_axes,
    map_batched,
    merge_numbers,
    merge_shared,
    stack_trees,
)

vmap = torch.func.vmap


class Mixing(NamedTuple):
    """What goes together. padded: batches of all sizes, the shorter ones masked, else those of one size. epochs: all, else those of one epoch."""

    padded: bool = False
    epochs: bool = False


class StackOutcome(NamedTuple):
    """What a stack gives. losses: [J] summed over the steps, on the host; upload, own: leading axis J."""

    losses: list[float]
    upload: Tree
    own: Tree


class Stack:
    """Jobs sorted by steps, the longest first: those still running at a step are the first ones, and a step touches views of these alone.

    What an algorithm is handed has an axis J where the jobs differ and none where they do not: a number that is equal in all stays a number, and so
    does what one cell shares with its jobs.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        given: Sequence[Given],
        jobs: Sequence[Job],
        task: StackedTask,
        how: Mixing,
    ):
        self.algorithm, self.cells, self.jobs = cells[jobs[0].cell].algorithm, cells, jobs
        self.settings = cells[jobs[0].cell].settings
        self.task, self.how = task, how
        self.deal = Deal(cells, jobs, given[jobs[0].cell].round)
        self.device = self.deal.device
        self.place = (self.deal.start, self.deal.size, self.deal.tensor(self.deal.source))
        self.work, self.work_dims = self._worked()
        self.local, self.dims = self._stacked(
            [local_of(cells[job.cell], given[job.cell], job) for job in jobs]
        )
        self._of: dict[int, tuple[Local, tuple[Tensor, ...]]] = {}

    def train(self) -> StackOutcome:
        """All of it. The one time that the host waits for the device is for the losses, after the last step."""
        self.begin()
        losses = torch.zeros(len(self.jobs), dtype=torch.float64, device=self.device)
        velocity = (
            tree.zeros_like(self.local.params)
            if isinstance(self.work.momentum, Tensor) or self.work.momentum
            else {}
        )
        for step in range(self.deal.steps[0]):
            active = range(sum(steps > step for steps in self.deal.steps))
            done = self._assembled(
                [self._direction(step, rows) for rows in self.parts(step, active)], active
            )
            self._sgd(len(active), done, velocity)
            losses[: len(active)] += done.loss
            self.write(len(active), done)
        upload, own = self.finish()
        return StackOutcome(losses.tolist(), upload, own)

    def parts(self, step: int, active: range) -> list[tuple[JobPlaces, int]]:
        """(jobs, batch size) that go together."""
        sizes = self.deal.sizes(step, active)
        epochs = [0] * len(sizes) if self.how.epochs else self.deal.epochs(step, active)
        kinds = [
            (0 if self.how.padded else size, epoch)
            for size, epoch in zip(sizes, epochs, strict=True)
        ]
        if len(set(kinds)) == 1:
            return [(active, max(sizes))]
        rows: dict[tuple[int, int], list[int]] = {}
        for j, kind in enumerate(kinds):
            rows.setdefault(kind, []).append(j)
        return [(some, max(sizes[j] for j in some)) for some in rows.values()]

    def begin(self) -> None:
        """The algorithm's `begin`; parameters and buffers are then the stack's own, as they are trained in place."""
        changed: list[str] = []

        def begin(local: Local, *place: Tensor) -> dict[str, Any]:
            out = self.algorithm.begin(self._task(place), local)
            changed.extend(
                name for name in Local._fields if getattr(out, name) is not getattr(local, name)
            )
            return {name: as_tensors(getattr(out, name), self.device) for name in changed}

        new = vmap(begin, in_dims=(self.dims, 0, 0, 0))(self.local, *self.place)
        local, dims = (
            self.local._replace(**new),
            self.dims._replace(**{name: leading_axes(new[name]) for name in changed}),
        )
        params, buffers = (
            copy_expanded(part, d, len(self.jobs))
            for part, d in ((local.params, dims.params), (local.buffers, dims.buffers))
        )
        carry = copy_expanded(local.carry, dims.carry, len(self.jobs))
        self.local = local._replace(params=params, buffers=buffers, carry=carry)
        self.dims = dims._replace(
            params=leading_axes(params), buffers=leading_axes(buffers), carry=leading_axes(carry)
        )
        self._of = {}

    def move(self, local: Local) -> None:
        """Goes on from there: a Local of the same form."""
        self.local, self._of = local, {}

    def finish(self) -> tuple[Tree, Tree]:
        """(upload, own) of all jobs."""

        def finish(local: Local, work: Work, *place: Tensor) -> tuple[Tree, Tree]:
            upload, own = self.algorithm.finish(self._task(place), local, work)
            return as_tensors(upload, self.device), as_tensors(own, self.device)

        return vmap(finish, in_dims=(self.dims, self.work_dims, 0, 0, 0))(
            self.local, self.work, *self.place
        )

    def direction(self, rows: JobPlaces, batch: Batch) -> Step:
        """The algorithm's `direction` of those jobs: leading axis R."""
        local, place = self._rows(rows)

        def direction(local: Local, batch: Batch, *place: Tensor) -> tuple[Any, ...]:
            return tuple(
                as_tensors(part, self.device)
                for part in self.algorithm.direction(self._task(place), local, batch)
            )

        dims = Batch(
            0,
            0,
            None if batch.mask is None else 0,
            0 if isinstance(batch.epoch, Tensor) else None,
            None,
        )  # type: ignore[arg-type]
        return Step(*vmap(direction, in_dims=(self.dims, dims, 0, 0, 0))(local, batch, *place))

    def _direction(self, step: int, part: tuple[JobPlaces, int]) -> tuple[JobPlaces, Step]:
        rows, width = part
        try:
            return rows, self.direction(rows, self.deal.take(step, rows, width))
        except ValueError as error:
            first = min(rows, key=lambda j: (self.jobs[j].cell, self.jobs[j].party))
            error.add_note(
                f"that was party {self.jobs[first].party}, of {self.deal.n[first]} examples, in batches of {self.deal.batch_size}"
            )
            raise

    def _task(self, place: tuple[Tensor, ...]) -> StackedTask:
        """With the examples of the job at hand."""
        start, size, source = place
        return replace(self.task, examples=lambda: self.deal.in_order(start, size, source))

    def _worked(self) -> tuple[Work, Work]:
        """Each number [J] float64, but for learning rate and momentum where they are equal in all; and where the axis is."""
        values, dims = {}, {}
        for name, column in zip(
            Work._fields, zip(*(job.work for job in self.jobs), strict=True), strict=True
        ):
            alike = name in ("lr", "momentum") and len(set(column)) == 1
            values[name] = (
                column[0]
                if alike
                else torch.tensor(column, dtype=torch.float64, device=self.device)
            )
            dims[name] = None if alike else 0
        return Work(**values), Work(**dims)  # type: ignore[arg-type]

    def _stacked(self, locals_: list[Local]) -> tuple[Local, Local]:
        """The jobs' Locals as one, and where each leaf has its axis: 0, or None for what is one for all."""
        like = tree.leaves(locals_[0].start)[0]
        keys = torch.tensor(
            [signed(int(one.key)) for one in locals_], dtype=torch.int64, device=self.device
        )
        fields: dict[str, Any] = {"key": keys}
        one_model = len({(job.cell, job.model) for job in self.jobs}) == 1
        fields["start"] = (
            locals_[0].start if one_model else stack_trees([one.start for one in locals_])
        )
        dims: dict[str, Any] = {
            "start": tree.map(lambda _: None if one_model else 0, fields["start"]),
            "key": 0,
        }
        for name in ("buffers", "each", "own"):
            fields[name] = stack_trees([getattr(one, name) for one in locals_])
            dims[name] = leading_axes(fields[name])
        fields["shared"], dims["shared"] = merge_shared([one.shared for one in locals_])
        fields["hyper"], dims["hyper"] = merge_numbers([one.hyper for one in locals_], like)
        fields |= {"params": fields["start"], "carry": {}}
        dims |= {"params": dims["start"], "carry": {}}
        return Local(**fields), Local(**dims)

    def _rows(self, rows: JobPlaces) -> tuple[Local, tuple[Tensor, ...]]:
        """What these jobs are handed. Views of the first ones are made once for each number of them."""
        if isinstance(rows, range) and len(rows) in self._of:
            return self._of[len(rows)]
        local = Local(
            *(
                map_batched(part, dims, lambda leaf: self.deal.of(leaf, rows))
                for part, dims in zip(self.local, self.dims, strict=True)
            )
        )
        made = local, tuple(self.deal.of(p, rows) for p in self.place)
        if isinstance(rows, range):
            self._of = {len(rows): made}
        return made

    def _assembled(self, parts: list[tuple[JobPlaces, Step]], active: range) -> Step:
        """The parts of a step as one, [A, ...]."""
        if len(parts) == 1:
            return parts[0][1]
        n = len(active)

        def whole(*leaves: Tensor) -> Tensor:
            out = leaves[0].new_empty(n, *leaves[0].shape[1:])
            for (rows, _), leaf in zip(parts, leaves, strict=True):
                assert isinstance(rows, list)  # there are several parts
                out[self.deal.at(rows)] = leaf
            return out

        steps = [{"": step._asdict()} for _, step in parts]
        return Step(**tree.map(whole, steps[0], *steps[1:])[""])

    def _sgd(self, n: int, step: Step, velocity: Tree) -> None:
        """As `looped.sgd`, for the first n jobs; a learning rate or momentum that differs between jobs is a tensor for each parameter."""
        params = self.local.params
        weights, moved = [w[:n] for w in params.values()], [step.grad[name] for name in params]
        decay = self.settings.weight_decay if self.algorithm.decay == "executor" else 0.0
        if decay:
            moved = list(torch._foreach_add(moved, weights, alpha=decay))
        if velocity:
            moving = [v[:n] for v in velocity.values()]
            rho = self.work.momentum
            torch._foreach_mul_(
                moving,
                [align_axes(rho[:n], w) for w in weights] if isinstance(rho, Tensor) else rho,
            )
            torch._foreach_add_(moving, moved)
            moved = moving
        if step.after:
            moved = list(torch._foreach_add(moved, [step.after[name] for name in params]))
        lr = self.work.lr
        if isinstance(lr, Tensor):
            torch._foreach_sub_(
                weights, torch._foreach_mul(moved, [align_axes(lr[:n], w) for w in weights])
            )
        else:
            torch._foreach_add_(weights, moved, alpha=-float(lr))

    def write(self, n: int, step: Step) -> None:
        """Buffers and carry of the first n jobs; those of jobs that ended stay as they were."""
        copy_into(self.local.buffers, step.buffers, n)
        if describe_form(step.carry) == describe_form(self.local.carry):
            copy_into(self.local.carry, step.carry, n)
        elif n == len(self.jobs):
            carry = copy_expanded(step.carry, leading_axes(step.carry), n)
            self.local, self.dims = (
                self.local._replace(carry=carry),
                self.dims._replace(carry=leading_axes(carry)),
            )
            self._of = {}
        else:
            raise UsageError(
                f"{self.algorithm.name}: direction returned carry {sorted(tree.flatten(step.carry))} after {sorted(tree.flatten(self.local.carry))}; "
                "stacked jobs must carry the same from the first step on: return the same keys, or use --engine looped or processes"
            )
