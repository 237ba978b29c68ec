"""A stack whose steps a GPU does by itself, each a CUDA graph that is captured once and replayed.

A step of a small model is a hundred kernels of microseconds each, and the host cannot start them
as fast as a GPU does them. A graph starts them all at once; but it does again what was captured,
the same kernels on the same addresses with the same numbers of the host's. So what a step reads
and writes has to stay where it is, and what differs from step to step has to lie on the device:

- `steps.py`: a step as a function of nothing but memory that stays. A counter of steps says which
  rows of the table of batches it reads (`stacked/table.py`, made before the first step), which
  learning rate, which draws of dropout.
- `kinds.py`: how many graphs there are. Jobs that have ended stay in their bucket, of all jobs,
  half of them, a quarter, ..., and are held where they are by a mask. Short batches are padded and
  masked.
- `weights.py`: weights, gradients and what an optimiser holds as a row a job, so that an affine
  correction, momentum and step are a few operations, however many layers there are.
- `memory.py`: what a later round brings is copied to where the first one's lies.
- `captured.py`: a function that on CUDA becomes a graph after a few calls, and elsewhere is called.
- `refusal.py`: what cannot be captured is refused before the first round.

A step whose jobs do not go together (batch norm and batches of unlike sizes, an algorithm that
reads the epoch and jobs in several) is called as `stacked` calls it, on the same memory.

**The capture itself has run nowhere yet**: no GPU was at hand. On a CPU all of it but that runs,
and is tested; there it is slower than any other engine.
"""

from .executor import Graphed

__all__ = ["Graphed"]
