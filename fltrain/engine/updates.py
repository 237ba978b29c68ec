"""The optimiser at work on the weights of one job, or of a stack of jobs."""

from typing import Any

import torch
from torch import Tensor

from .. import tree
from ..interface import Algorithm, Step, Work
from ..optimizers import Optimizer, Pace, find_optimizer
from ..settings import Settings
from ..tree import Tree
from .clipping import clip

# What a party keeps of its optimiser is under this name in `State.parties`, and beside the slots
# the number of steps that they are made of.
OPTIMIZER = "optimizer"
STEPS = "steps"


class Updates:
    """Does the steps of one job, or of a stack of jobs whose weights have them as first axis.

    weights: changed in place. kept: what a party has kept of its optimiser, or {}; it is copied.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        settings: Settings,
        *,
        weights: Tree,
        work: Work,
        kept: Tree,
        is_stack: bool = False,
    ):
        self.settings, self.weights, self.is_stack = settings, weights, is_stack
        self.optimizer = find_optimizer(settings.optimizer)
        self.numbers = list_numbers(self.optimizer, algorithm, settings, work)
        self.slots: Tree = {}
        for slot in self.optimizer.list_slots(self.numbers):
            self.slots[slot] = tree.clone(kept[slot]) if kept else tree.zeros_like(weights)
        # steps that did not move a parameter, by its name: those of other parameters alone
        self.rests: Tree = {}
        self.steps_before: Tensor | float = 0.0
        if kept:
            steps = kept[STEPS]
            # the host waits for a job's number once, and never for those of a stack
            self.steps_before = steps if is_stack else float(steps)

    def apply(
        self,
        step: Step,
        number: int | Tensor,
        lr: float | Tensor,
        n: int | None = None,
        running: Tensor | None = None,
    ) -> None:
        """Do a step. number: within this training, from 0. n: of the first n jobs of a stack.

        running: [n], which of them have not ended; the others stay as they are. None for all.
        """
        if running is not None:
            self._apply_to_running(step, number, lr, n, running=running)
            return
        if step.moves:
            self._apply_to_some(step, number, lr, n)
            return
        grads = clip(self._take(step.grad), self.settings, is_stack=self.is_stack)
        state = {slot: self._take(values, n) for slot, values in self.slots.items()}
        pace = Pace(lr=lr, number=self._count_steps(number, n), after=self._take(step.after))
        weights = self._take(self.weights, n)
        self.optimizer.step(weights, grads, state, pace, **self._cut(n))

    def _apply_to_running(
        self,
        step: Step,
        number: int | Tensor,
        lr: float | Tensor,
        n: int | None,
        *,
        running: Tensor,
    ) -> None:
        """Do a step, and put back the jobs that have ended."""
        held = [self.weights, *self.slots.values()]
        leaves = [_cut_jobs(leaf, n) for values in held for leaf in values.values()]
        before = [leaf.clone() for leaf in leaves]
        self.apply(step, number, lr, n)
        for leaf, old in zip(leaves, before, strict=True):
            axes = [1] * (leaf.dim() - 1)
            leaf.copy_(torch.where(running.view(-1, *axes), leaf, old))

    def _apply_to_some(
        self, step: Step, number: int | Tensor, lr: float | Tensor, n: int | None
    ) -> None:
        """Do a step of the parameters that it moves, and put the others back.

        Their gradient is 0, so that it counts for nothing where gradients are clipped together.
        """
        moves = {name: self._spread_over(name, is_moved) for name, is_moved in step.moves.items()}
        grad = dict(step.grad)
        for name, is_moved in moves.items():
            grad[name] = torch.where(is_moved, grad[name], 0)
        held = [self.weights, *self.slots.values()]
        before = [{name: _cut_jobs(values[name], n).clone() for name in moves} for values in held]
        self.apply(step._replace(grad=grad, moves={}), number, lr, n)
        for values, old in zip(held, before, strict=True):
            for name, is_moved in moves.items():
                now = _cut_jobs(values[name], n)
                now.copy_(torch.where(is_moved, now, old[name]))
        if self.optimizer.counts_steps:
            self._count_rests(step.moves, n)

    def _count_steps(self, number: int | Tensor, n: int | None) -> float | Tensor | list[Tensor]:
        """Return the number of a step from 1, one for each parameter where some have rested.

        As torch counts those that had a gradient.
        """
        before = self.steps_before
        if isinstance(before, Tensor):
            before = before[:n]
        count = before + number + 1
        if not self.rests:
            return count
        device = next(iter(self.rests.values())).device
        total = torch.as_tensor(count, dtype=torch.float64, device=device)
        own = {name: total - _cut_jobs(rests, n) for name, rests in self.rests.items()}
        return [own.get(name, total) for name in self.weights]

    def _count_rests(self, moves: Tree, n: int | None) -> None:
        """Note which parameters a step has not moved."""
        for name, is_moved in moves.items():
            if name not in self.rests:
                weight = self.weights[name]
                shape = weight.shape[:1] if self.is_stack else ()
                self.rests[name] = weight.new_zeros(shape, dtype=torch.float64)
            _cut_jobs(self.rests[name], n).add_(~is_moved)

    def _spread_over(self, name: str, is_moved: Tensor) -> Tensor:
        """Return the truth values of a stack with as many axes as the weights of that name."""
        if not self.is_stack:
            return is_moved
        return is_moved.view(-1, *[1] * (self.weights[name].dim() - 1))

    def keep(self, steps: float | Tensor) -> Tree:
        """Return what the party keeps, after so many steps of this training."""
        device = tree.leaves(self.weights)[0].device
        total = torch.as_tensor(self.steps_before + steps, dtype=torch.float64, device=device)
        return {**self.slots, STEPS: total}

    def _take(self, values: Tree, n: int | None = None) -> list[Tensor]:
        """Return the leaves of the parameters, in their order; [] of nothing."""
        if not values:
            return []
        leaves = [values[name] for name in self.weights]
        return leaves if n is None else [leaf[:n] for leaf in leaves]

    def _cut(self, n: int | None) -> dict[str, Any]:
        """Return the optimiser's numbers of the first n jobs."""
        return {
            name: number[:n] if isinstance(number, Tensor) else number
            for name, number in self.numbers.items()
        }


def _cut_jobs(values: Tensor, n: int | None) -> Tensor:
    """Return a view of the first n jobs; None: of all, which may have no axis."""
    return values if n is None else values[:n]


def uses_momentum(settings: Settings) -> bool:
    """Return whether the optimiser of the settings has a momentum."""
    return "momentum" in find_optimizer(settings.optimizer).uses


def count_slots(settings: Settings) -> int:
    """Return how many tensors the optimiser holds for each parameter, at most."""
    return len(find_optimizer(settings.optimizer).slots)


def list_numbers(
    optimizer: Optimizer, algorithm: Algorithm, settings: Settings, work: Work | None = None
) -> dict[str, Any]:
    """Return the numbers of an optimiser by their names, with those of a job where it has some."""
    numbers = {name: getattr(settings, name) for name in optimizer.uses}
    if algorithm.decay == "algorithm":
        numbers["weight_decay"] = 0.0  # `direction` has added it
    if work is not None and "momentum" in numbers:
        numbers["momentum"] = work.momentum
    return numbers


def make_kept_rows(algorithm: Algorithm, settings: Settings, weights: Tree, n_parties: int) -> Tree:
    """Return what parties keep of their optimisers before the first round: [P, ...], all 0.

    {} where they keep nothing. weights: of one model.
    """
    if not settings.keep_optimizer:
        return {}
    optimizer = find_optimizer(settings.optimizer)
    slots = optimizer.list_slots(list_numbers(optimizer, algorithm, settings))
    zero = tree.zeros_like(weights)
    rows: Tree = {slot: tree.repeat(zero, n_parties) for slot in slots}
    steps = torch.zeros(n_parties, dtype=torch.float64, device=tree.leaves(weights)[0].device)
    return {OPTIMIZER: {**rows, STEPS: steps}}
