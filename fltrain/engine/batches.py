"""Which examples a job sees, in which order."""

from collections.abc import Iterator

from ..counting import ceil_div, count_batches, count_epochs, count_steps
from ..draws import key as key_of
from ..draws import order
from ..inputs.examples import PartyExamples
from ..interface import Batch
from ..settings import Settings


def iterate_batches(
    examples: PartyExamples,
    party: int,
    round: int,
    key: int,
    settings: Settings,
    steps: int | None = None,
) -> Iterator[Batch]:
    """Yield the batches of one job, in order. Nothing is padded.

    A new order each epoch, or one random order for good where `shuffle` is off. steps: of the
    optimiser; None for those of whole work.
    """
    n = examples.size(party)
    start = examples.indptr[party]
    device = examples.y.device
    size = settings.batch_size
    steps = count_steps(n, settings) if steps is None else steps
    batches_per_epoch = ceil_div(n, size)
    epochs_per_round = count_epochs(n, settings)
    for number in range(count_batches(n, settings, steps)):
        epoch, i = divmod(number, batches_per_epoch)
        if i == 0 and settings.shuffle:
            at = start + order(key, epoch, n, device)
        elif i == 0:
            at = start + order(fixed_order_key(settings.seed), 0, n, device)
        chosen = at[i * size : (i + 1) * size]
        # epochs of the whole run are counted from 1: 0 means evaluation, where nothing is drawn
        run_epoch = (round - 1) * epochs_per_round + epoch + 1
        x = examples.inputs(chosen, run_epoch)
        yield Batch(x=x, y=examples.y[chosen], mask=None, epoch=epoch, step=number)


def fixed_order_key(seed: int) -> int:
    """Return the key of the order that stays.

    A random one, too: rows ascend in a split, and where they are sorted by class nothing could be
    learned from them in order.
    """
    return key_of(seed, "fixed order")


def iterate_in_order(examples: PartyExamples, party: int, size: int = 1000) -> Iterator[Batch]:
    """Yield every example of a party once, in order: for a full gradient."""
    end = examples.indptr[party + 1]
    for start in range(examples.indptr[party], end, size):
        at = slice(start, min(start + size, end))
        yield Batch(x=examples.inputs(at), y=examples.y[at], mask=None, epoch=0, step=0)
