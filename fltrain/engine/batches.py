"""Which examples a job sees, in which order."""

from collections.abc import Iterator

from ..draws import key as key_of
from ..draws import order
from ..inputs.federated import PartyExamples
from ..interface import Batch
from ..settings import Settings


def count_steps(n: int, settings: Settings) -> int:
    """Optimiser steps of a party with n examples: whole epochs, the short last batch counted, unless the steps themselves are set."""
    if settings.local_steps is not None:
        return settings.local_steps if n else 0
    return settings.local_epochs * -(-n // settings.batch_size)


def iterate_batches(
    examples: PartyExamples, party: int, round: int, key: int, settings: Settings
) -> Iterator[Batch]:
    """The batches of one job, in order; a new order each epoch, or one random order for good where `shuffle` is off. Nothing is padded."""
    n, start = examples.size(party), examples.indptr[party]
    steps = count_steps(n, settings)
    per_epoch = -(-n // settings.batch_size)
    for step in range(steps):
        epoch, i = divmod(step, per_epoch)
        if i == 0:
            at = (
                order(
                    key if settings.shuffle else fixed_order_key(settings.seed),
                    epoch if settings.shuffle else 0,
                    n,
                    examples.y.device,
                )
                + start
            )
        chosen = at[i * settings.batch_size : (i + 1) * settings.batch_size]
        run_epoch = (
            (round - 1) * -(-steps // per_epoch) + epoch + 1
        )  # epochs of the whole run are counted from 1
        yield Batch(examples.inputs(chosen, run_epoch), examples.y[chosen], None, epoch, step)


def fixed_order_key(seed: int) -> int:
    """The key of the order that stays: rows ascend in a split, and where they are sorted by class nothing could be learned from them."""
    return key_of(seed, "fixed order")


def iterate_in_order(examples: PartyExamples, party: int, size: int = 1000) -> Iterator[Batch]:
    """Every example of a party once, in order: for a full gradient."""
    for start in range(examples.indptr[party], examples.indptr[party + 1], size):
        at = slice(start, min(start + size, examples.indptr[party + 1]))
        yield Batch(examples.inputs(at), examples.y[at], None, 0, 0)
