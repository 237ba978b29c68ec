"""Where the examples of a stack's jobs are: in the data of one cell, or of several."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ...inputs.examples import PartyExamples, Preparation
from .rows import RowSelector, StackRows


class StackedSources:
    """The examples that J jobs read.

    distinct: those that differ, since cells on one split share them. number: the place of each
    job's examples among them.
    """

    def __init__(self, data: Sequence[PartyExamples], selector: RowSelector):
        self.distinct, self.number = _find_distinct(data)
        self._selector = selector

    @property
    def has_draws(self) -> bool:
        """Whether something is drawn for each epoch: noise or augmentation."""
        prepared = [source.prepare for source in self.distinct]
        return any(prepare.augment is not None or prepare.noise for prepare in prepared)

    def load(self, at: Tensor, rows: StackRows, epoch: int | Tensor) -> tuple[Tensor, Tensor]:
        """Return x [R, width, ...] and y [R, width] of the examples `at` [R, width].

        By one call for each source. epoch: of the run, one for all or [R].
        """
        if len(self.distinct) == 1:
            return _load(self.distinct[0], at, epoch)
        xs, ys, indices = [], [], []
        for number, source in enumerate(self.distinct):
            mine = [i for i, job in enumerate(rows.places) if self.number[job] == number]
            if not mine:
                continue
            index = self._selector.index(mine)
            its_epoch = epoch[index] if isinstance(epoch, Tensor) else epoch
            x, y = _load(source, at[index], its_epoch)
            xs.append(x)
            ys.append(y)
            indices.append(index)
        back = torch.argsort(torch.cat(indices))  # from the order of sources to that of jobs
        x = torch.cat(xs)[back]
        y = torch.cat(ys)[back]
        return x, y

    def load_one(self, at: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        """Return x [width, ...] and y [width] of one job's examples, in `torch.func.vmap`.

        number: of the job's source, a tensor that cannot be read there, so an example is read from
        every source and the right one is taken.
        """
        first, *others = self.distinct
        # a place of another source may lie behind the end of this one
        there = torch.where(number == 0, at, 0) if others else at
        x = first.inputs(there)
        y = first.y[there]
        for other_number, other in enumerate(others, 1):
            is_its = number == other_number
            there = torch.where(is_its, at, 0)
            x = torch.where(is_its, other.inputs(there), x)
            y = torch.where(is_its, other.y[there], y)
        return x, y


def _load(source: PartyExamples, at: Tensor, epoch: int | Tensor) -> tuple[Tensor, Tensor]:
    """Return x [R, width, ...] and y [R, width] of the examples `at`. epoch: one, or [R]."""
    flat = at.flatten()
    if isinstance(epoch, Tensor):
        epoch = epoch.repeat_interleave(at.shape[1])  # one for each example
    x = source.inputs(flat, epoch)
    x = x.reshape(*at.shape, *x.shape[1:])
    y = source.y[flat].reshape(at.shape)
    return x, y


def _find_distinct(data: Sequence[PartyExamples]) -> tuple[list[PartyExamples], list[int]]:
    """Return the examples that differ, and for each job which of them it has."""
    distinct: list[PartyExamples] = []
    numbers = []
    for one in data:
        number = _find_same(one, distinct)
        if number == len(distinct):
            distinct.append(one)
        numbers.append(number)
    return distinct, numbers


def _find_same(one: PartyExamples, known: list[PartyExamples]) -> int:
    """Return the number of the known examples that are the same; how many there are for none."""
    for number, other in enumerate(known):
        if _have_same_inputs(one, other):
            return number
    return len(known)


def _have_same_inputs(a: PartyExamples, b: PartyExamples) -> bool:
    """Return whether both give the same inputs for the same places: same tensors, same draws."""
    if a is b:
        return True
    for name in ("x", "y", "rows", "party"):
        if getattr(a, name) is not getattr(b, name):
            return False
    return _prepare_alike(a.prepare, b.prepare)


def _prepare_alike(a: Preparation, b: Preparation) -> bool:
    """Return whether two preparations draw and calculate the same."""
    if a.normalise is not b.normalise:
        return False
    if [id(noise) for noise in a.noise] != [id(noise) for noise in b.noise]:
        return False
    if a.augment is None or b.augment is None:
        return a.augment is b.augment
    return vars(a.augment) == vars(b.augment)
