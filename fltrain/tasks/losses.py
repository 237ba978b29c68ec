"""Losses of a batch: cross entropy, with smoothed labels or without, and those of a user's own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from niidpart.errors import UsageError
from niidpart.registry.own_code import load_function, require_takes

from ..interface import Batch, Out

Loss = Callable[[Out, Batch], Tensor]
# What a user writes: (logits [B, K], classes [B]) -> a scalar, the mean over the batch. A loss of
# torch.nn is one.
OwnFunction = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(out: Out, batch: Batch) -> Tensor:
    """Return the mean cross entropy over the examples that are no padding."""
    return _average_cross_entropy(out, batch, smoothing=0.0)


@dataclass(frozen=True)
class SmoothedCrossEntropy:
    """Mean cross entropy against labels of which a share `smoothing` is spread over all classes.

    Szegedy et al., CVPR 2016, section 7; as torch.nn.CrossEntropyLoss has it.
    """

    smoothing: float

    def __call__(self, out: Out, batch: Batch) -> Tensor:
        return _average_cross_entropy(out, batch, self.smoothing)


@dataclass(frozen=True)
class OwnLoss:
    """A user's own loss. It sees no mask, so an executor gives it batches without padding."""

    function: OwnFunction
    name: str

    def __call__(self, out: Out, batch: Batch) -> Tensor:
        loss = self.function(out.logits, batch.y)
        if not isinstance(loss, Tensor):
            raise UsageError(f"the loss {self.name} returned {loss!r}; a tensor is needed")
        if loss.dim() or not loss.is_floating_point():
            came = _describe_tensor(loss, len(batch.y))
            raise UsageError(
                f"the loss {self.name} returned {came}; one floating-point number is needed, the "
                "mean over the batch: end it with .mean()"
            )
        self._require_gradient(loss, out.logits)
        return loss

    def _require_gradient(self, loss: Tensor, logits: Tensor) -> None:
        """Raise UsageError in training for a loss that training cannot change."""
        is_trained = torch.is_grad_enabled() and logits.requires_grad
        if is_trained and not loss.requires_grad:
            raise UsageError(
                f"the loss {self.name} returned a number without a gradient: it does not depend on "
                "the logits by torch's operations, so nothing can be trained with it; compute it "
                "from the logits without detach(), item(), argmax() or numpy"
            )


def _describe_tensor(loss: Tensor, n_examples: int) -> str:
    """Return in words what came in the place of one number."""
    if loss.dim() == 0:
        return f"one number of type {loss.dtype}"
    kind = "numbers" if loss.is_floating_point() else f"values of {loss.dtype}"
    if loss.shape == (n_examples,):
        return f"{n_examples} {kind}, one for each example of the batch"
    sizes = " x ".join(map(str, loss.shape))
    return f"{sizes} {kind} for a batch of {n_examples} examples"


class Losses(NamedTuple):
    """What a run minimises, and what its models are evaluated by, which is not smoothed."""

    train: Loss = cross_entropy
    test: Loss = cross_entropy


def resolve_losses(asked: object, smoothing: float) -> Losses:
    """Return the losses of a run.

    asked: None for cross entropy, `file.py:function`, or a function. UsageError for anything else.
    """
    if asked is None:
        return Losses(SmoothedCrossEntropy(smoothing) if smoothing else cross_entropy)
    if smoothing:
        raise UsageError(
            f"label-smoothing is {smoothing}, and the loss is one of your own: smooth the labels "
            "there, or leave --loss out"
        )
    if isinstance(asked, str):
        own = OwnLoss(_load_loss(asked), asked)
    elif callable(asked):
        own = OwnLoss(asked, getattr(asked, "__name__", type(asked).__name__))
    else:
        raise UsageError(
            f"loss is {asked!r}; give file.py:function or a function (logits, y) -> scalar"
        )
    return Losses(own, own)


def _load_loss(name: str) -> OwnFunction:
    if ":" not in name:
        raise UsageError(
            f"loss is {name!r}; cross entropy needs no --loss, and one of your own is "
            "file.py:function (logits, y) -> scalar"
        )
    function: Any = load_function(name, "loss")
    require_takes(function, "loss", name, given=("logits", "y"))
    own: OwnFunction = function
    return own


def _average_cross_entropy(out: Out, batch: Batch, smoothing: float) -> Tensor:
    if batch.mask is None:
        return F.cross_entropy(out.logits, batch.y, label_smoothing=smoothing)
    losses = F.cross_entropy(out.logits, batch.y, reduction="none", label_smoothing=smoothing)
    # at least 1, so that a batch of padding alone has loss and gradient 0
    return (losses * batch.mask).sum() / batch.mask.sum().clamp(min=1)
