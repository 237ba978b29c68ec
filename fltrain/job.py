"""What one job reads and returns: batches, outputs of the model, steps, and its state (`Local`).

A job is one party that trains one model. Axes: B examples of a batch, K classes.
"""

from typing import Any, NamedTuple

from torch import Tensor

from .tree import Tree

# The numbers of an algorithm by the names of its options: floats, whole numbers, tuples of them.
# Not a tree: its values need not be tensors.
Hyper = dict[str, Any]


class Batch(NamedTuple):
    """Examples of one step.

    Attributes
    ----------
    x : Tensor
        [B, ...] floats.
    y : Tensor
        [B] class ids.
    mask : Tensor or None
        [B] bool, False on padding; None for no padding.
    epoch : int or Tensor
        Counted from 0 within this local training; a tensor where jobs that run at once are in
        different epochs (`Algorithm.lockstep`).
    step : int or Tensor
        The number of the batch, from 0 within this local training; a tensor of no axis where a step
        is captured (`--engine graph`): calculate with it, do not branch on it.

    Examples
    --------
    A mean over the examples that are no padding, without a branch, so that jobs can be stacked:

    >>> mask = torch.tensor([True, True, False])
    >>> batch = Batch(torch.zeros(3, 5), torch.tensor([0, 1, 0]), mask, epoch=0, step=0)
    >>> losses = torch.tensor([1.0, 2.0, 9.0])
    >>> (losses * batch.mask).sum() / batch.mask.sum().clamp(min=1)
    tensor(1.5000)
    """

    x: Tensor
    y: Tensor
    mask: Tensor | None
    epoch: int | Tensor
    step: int | Tensor


class Out(NamedTuple):
    """Outputs of a model.

    Attributes
    ----------
    logits : Tensor
        [B, K].
    features : Tensor
        [B, D], the input of the last layer.
    taps : list of Tensor
        The output of each stage of the model, the logits last.
    buffers : Tree
        The buffers after the pass.

    Examples
    --------
    A term for `Task.grad`, which draws the features to 0:

    >>> def extra(params, out):
    ...     return 0.1 * out.features.square().mean()
    >>> logits, features = torch.zeros(2, 10), torch.ones(2, 4)
    >>> extra({}, Out(logits, features, taps=[features, logits], buffers={}))
    tensor(0.1000)
    """

    logits: Tensor
    features: Tensor
    taps: list[Tensor]
    buffers: Tree


class Step(NamedTuple):
    """The update that one batch asks for.

    The executor clips `grad`, adds weight decay, puts it through the optimiser (momentum, say),
    adds `after` to what came out, and steps by the learning rate.

    Attributes
    ----------
    grad : Tree
        Like the parameters.
    loss : Tensor
        A scalar, for the metrics.
    buffers : Tree
        The buffers from here on.
    carry : Tree
        `Local.carry` from here on.
    after : Tree
        Added behind the optimiser, before the learning rate; {} for nothing.
    moves : Tree
        Whether the step moves a parameter, a truth value of no axis by its name. One that it does
        not move stays as it is, with what the optimiser holds of it: neither gradient nor momentum
        nor weight decay count there. Parameters that are not named are moved; {} moves all.

    Examples
    --------
    >>> step = Step({"w": torch.tensor([3.0, -2.0])}, torch.tensor(0.7), buffers={}, carry={})
    >>> step._replace(grad=fltrain.tree.map(torch.sign, step.grad)).grad
    {'w': tensor([ 1., -1.])}
    """

    grad: Tree
    loss: Tensor
    buffers: Tree
    carry: Tree
    after: Tree = {}  # noqa: RUF012 - "nothing"; a tree is never changed in place
    moves: Tree = {}  # noqa: RUF012


class Work(NamedTuple):
    """A job's schedule and weight, known before its first step.

    Numbers, or tensors where an executor runs many jobs at once: calculate with them, do not
    branch on them.

    Attributes
    ----------
    steps, n : float or Tensor
        Optimiser steps that the job takes, and examples of its party.
    share : float or Tensor
        The weight of this job in the mean of its model.
    lr, momentum : float or Tensor
        Learning rate and momentum of this round; with `--lr-over steps` the rate of the first step.
        Momentum is 0 where the optimiser has none.
    first : float or Tensor
        1 for the job of the lowest party among those that train the same model, else 0: what
        cannot be averaged is taken from it.

    Examples
    --------
    What `finish` uploads is added up over the jobs, so it is a term of the mean:

    >>> work = Work(steps=10, n=640, share=0.25, lr=0.01, momentum=0.9)
    >>> work.share * torch.tensor([4.0, 8.0], dtype=torch.float64)
    tensor([1., 2.], dtype=torch.float64)
    """

    steps: float | Tensor
    n: float | Tensor
    share: float | Tensor
    lr: float | Tensor
    momentum: float | Tensor
    first: float | Tensor = 1.0


class Local(NamedTuple):
    """All that one job reads; no party axis anywhere.

    Attributes
    ----------
    params : Tree
        The weights being trained.
    buffers : Tree
        Batch-norm statistics and the like, being updated.
    start : Tree
        The weights received this round.
    shared, each : Tree
        Sent this round: broadcast to every job, and to this job alone.
    own : Tree
        Kept by the party between rounds.
    carry : Tree
        Lives for this local training only.
    hyper : Hyper
        The algorithm's numbers.
    key : int or Tensor
        Of this party, model and round, for counter-based draws (`fltrain.draws`).

    Examples
    --------
    The gradient of FedProx's term, mu/2 ||w - start||^2:

    >>> def pull(local):
    ...     mu = local.hyper["mu"]
    ...     return fltrain.tree.map(lambda w, start: mu * (w - start), local.params, local.start)
    >>> params, start = {"w": torch.tensor([3.0])}, {"w": torch.tensor([1.0])}
    >>> pull(Local(params, {}, start, {}, {}, {}, {}, hyper={"mu": 0.5}, key=7))
    {'w': tensor([1.])}
    """

    params: Tree
    buffers: Tree
    start: Tree
    shared: Tree
    each: Tree
    own: Tree
    carry: Tree
    hyper: Hyper
    key: int | Tensor
