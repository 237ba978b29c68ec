"""All jobs at once: weights with a leading axis J, an algorithm's functions under vmap.

An algorithm is written for one job: `direction(task, local, batch)` reads weights of shape [3, 6]
and returns a gradient of that shape. `torch.func.vmap` turns it into a function of many jobs, in
which every operation has one more axis. For two jobs with FedProx (mu 0.1), which start from one
global model and have batches of four rows of six numbers:

    name             shape       in_dims    seen by `direction`
    local.params.w   [2, 3, 6]   0          [3, 6], the job's own weights
    local.start.w    [3, 6]      None       [3, 6], the same tensor in both jobs
    local.hyper.mu   0.1         None       0.1, a number
    batch.x          [2, 4, 6]   0          [4, 6], the job's own batch
    result.grad.w    [2, 3, 6]              [3, 6]

    in_dims = (Local(params={"w": 0}, start={"w": None}, ...), Batch(x=0, ...))
    step = vmap(direction, in_dims)(local, batch)

`in_dims` has the form of the arguments: 0 where a leaf has the axis of jobs, None where one value
is for all (`merging.py`). If the second job had mu 0.2, `hyper.mu` would be a tensor [2] with 0.
One SGD step then moves params [2, 3, 6] along grad [2, 3, 6] (`optimiser.py`).

Jobs of a stack are sorted by steps, the longest first. If job 0 has 5 steps and job 1 has 3, steps
0 to 2 take both, and steps 3 and 4 take the slice params[:1] (`stack.py`, `rows.py`). Where job 1
has a last batch of two rows, it is padded to four with a mask, or is its own call of `direction`
where the model would notice the padding (`probing.py`, `Mixing`).
"""

from .executor import Stacked

__all__ = ["Stacked"]
