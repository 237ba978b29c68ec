"""The steps of a job as the compiled code does them: which examples, in which order."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ...counting import ceil_div, count_epochs, count_steps_per_epoch
from ...draws import key, order
from ...inputs.examples import PartyExamples
from ...settings import Settings
from ..batches import fixed_order_key
from ..jobs import Job


class Portion(NamedTuple):
    """Steps that follow each other, by one call.

    order: rows of x and y, epoch after epoch, `per_epoch` of each; begin: the number of the first
    step, from 0. Of a large data set x and y are all rows.
    """

    x: Tensor
    y: Tensor
    order: Tensor
    per_epoch: int
    begin: int
    steps: int


def iterate_portions(
    examples: PartyExamples, job: Job, round: int, settings: Settings
) -> Iterator[Portion]:
    """Yield the steps of a job, in the order of `batches.iterate_batches`.

    All at once, or, where examples are prepared (noise, normalisation, augmentation), an epoch at a
    time.
    """
    n = examples.size(job.party)
    start = examples.indptr[job.party]
    steps = int(job.work.steps)
    steps_per_epoch = count_steps_per_epoch(n, settings)
    epochs = ceil_div(steps, steps_per_epoch)
    device = examples.y.device
    if settings.shuffle:
        order_key = key(settings.seed, "job", round, job.party)
        orders = [order(order_key, epoch, n, device) for epoch in range(epochs)]
    else:
        orders = [order(fixed_order_key(settings.seed), 0, n, device)] * epochs
    prepare = examples.prepare
    if prepare.augment is None and prepare.normalise is None and not prepare.noise:
        x, y, places = _lay_out(examples, slice(start, start + n))
        order_in_x = torch.cat(orders)
        if places is not None:
            order_in_x = places[order_in_x]
        yield Portion(x=x, y=y, order=order_in_x, per_epoch=n, begin=0, steps=steps)
        return
    for epoch, at in enumerate(orders):
        run_epoch = (round - 1) * count_epochs(n, settings) + epoch + 1
        x = examples.inputs(at + start, run_epoch).float().contiguous()
        begin = epoch * steps_per_epoch
        yield Portion(
            x=x,
            y=examples.y[at + start],
            order=torch.arange(n),
            per_epoch=n,
            begin=begin,
            steps=min(steps_per_epoch, steps - begin),
        )


def _lay_out(examples: PartyExamples, rows: slice) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return features and labels that hold a party's rows, and the places of these in them.

    None where it is the party's rows that they hold, in order. A large data set is not copied.
    """
    if examples.places is None or not examples.x.is_contiguous():
        return examples.take(rows), examples.y[rows].contiguous(), None
    return examples.x, examples.labels_in_place, examples.places[rows]
