"""Kinds of steps: steps of one kind start the same kernels, so that one graph does for all."""

from typing import NamedTuple

from ...counting import ceil_div
from ..stacked.mixing import Mixing
from ..stacked.table import StepRows


class StepKind(NamedTuple):
    """What steps have in common that can share a graph.

    n: jobs of the bucket; width: examples of the batches; is_masked: whether some batch is shorter;
    is_ragged: whether some jobs of the bucket have ended, and are held; epoch: of all jobs, where
    the algorithm reads it as a number.
    """

    n: int
    width: int
    is_masked: bool
    is_ragged: bool
    epoch: int | None


def find_kind(rows: StepRows, n_jobs: int, width: int, mixing: Mixing) -> StepKind:
    """Return the kind of a step whose jobs go together. width: of the widest batch there is."""
    bucket = find_bucket(rows.n, n_jobs)
    # where nothing can be padded, all batches of the step are of one size
    its_width = width if mixing.padded else rows.widest
    return StepKind(
        n=bucket,
        width=its_width,
        is_masked=rows.shortest < its_width,
        is_ragged=rows.n < bucket,
        epoch=None if mixing.epochs else rows.first_epoch,
    )


def find_bucket(n: int, n_jobs: int) -> int:
    """Return the smallest bucket for n jobs: all jobs, half of them, a quarter, ..., one.

    Jobs of a bucket that have ended are calculated in vain, at most as many as still run.
    """
    bucket = n_jobs
    while bucket > 1 and ceil_div(bucket, 2) >= n:
        bucket = ceil_div(bucket, 2)
    return bucket
