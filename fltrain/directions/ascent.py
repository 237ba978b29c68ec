"""Directions whose gradient is taken beside the weights, declared as data.

A step of sharpness-aware minimisation goes along the gradient at a point w + e near the weights w:

- `AscentDirection`: e leads uphill, along the gradient g of the batch at w (two gradients a step),

      d = g - dual - common,  e = rho T^2 d / ||T d||,  g <- (1 - mix) g + mix grad f(w + e)

  with the length ||.|| over all parameters. T is 1, or |w| + eta for the numbers that are measured
  by their size (FedASAM). Where there is a dual, of `local.carry["dual"]`, it moves by e - common
  with each batch (FedSMOO).
- `OffsetDirection`: e is a constant of one local training (FedLESAM; one gradient a step).

Affine terms come after that, at the weights themselves (`affine`). Both gradients are of one batch
with one dropout, without weight decay. Loss and buffers are those of the first one, so that
statistics move once a batch. An executor that knows these numbers can do the steps in one pass with
the gradient: compiled code does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from .. import tree
from ..interface import Batch, Local, Step, Task
from ..tree import Tree
from .affine import Affine, add_terms

__all__ = ["DUAL", "Ascent", "AscentDirection", "OffsetDirection"]

DUAL = "dual"  # of `Local.carry`
# Added to a length, so that 0 is not divided by. The authors of FedSAM have this one; others have
# 1e-7, of which a gradient of length 0.01 is 1e-5 shorter.
LEAST_LENGTH = 1e-16


class Ascent(NamedTuple):
    """How far uphill the second gradient is taken, constants of one local training.

    Attributes
    ----------
    rho : float or Tensor
        Length of the way: a number, or a tensor of no axis.
    mix : float or Tensor
        Weight of the second gradient; the rest is that of the first.
    sized : tuple of str
        Parameters whose numbers are measured by their size.
    eta : float or Tensor
        Added to that size.
    common : Tree
        Like the parameters; taken off the first gradient before the ascent, and off each change of
        the dual. {} for an ascent without a dual.

    Examples
    --------
    >>> Ascent(rho=0.05)
    Ascent(rho=0.05, mix=1.0, sized=(), eta=0.0, common={})
    """

    rho: float | Tensor
    mix: float | Tensor = 1.0
    sized: tuple[str, ...] = ()
    eta: float | Tensor = 0.0
    common: Tree = {}  # noqa: RUF012 - "nothing"; a tree is never changed in place


def _give_no_terms(local: Local) -> Affine:
    return Affine()


def _default_to_no_terms() -> Callable[[Local], Affine]:
    """Return what is the default of a field: as a plain default it would be a method."""
    return _give_no_terms


@dataclass(frozen=True)
class AscentDirection:
    """An algorithm's `direction`: the gradient uphill from the weights, and affine terms.

    Parameters
    ----------
    ascent : callable
        ascent(local) -> Ascent, of what `begin` gave; it must not look at `local.params`.
    terms : callable
        terms(local) -> Affine, likewise.

    Examples
    --------
    Sharpness-aware minimisation:

    >>> def ascent(local):
    ...     return Ascent(rho=local.hyper["rho"])
    >>> direction = AscentDirection(ascent)
    """

    ascent: Callable[[Local], Ascent]
    terms: Callable[[Local], Affine] = field(default_factory=_default_to_no_terms)

    def __call__(self, task: Task, local: Local, batch: Batch) -> Step:
        """Return the step along the gradient uphill, with the terms."""
        ascent = self.ascent(local)
        first = task.grad(local, batch)
        carry, slope = local.carry, first.grad
        if ascent.common:
            slope = _take_off(slope, carry[DUAL], ascent.common)
        way, scale = _find_way(ascent, slope, local.params)
        uphill = tree.map(lambda w, d: _go(w, d, scale), local.params, way)
        second = task.grad(local, batch, params=uphill)
        if ascent.common:
            left = tree.map(torch.sub, carry[DUAL], ascent.common)
            carry = carry | {DUAL: tree.map(lambda mu, d: _go(mu, d, scale), left, way)}
        step = first._replace(grad=_mix(ascent.mix, first.grad, second.grad), carry=carry)
        return add_terms(self.terms(local), step, local)


@dataclass(frozen=True)
class OffsetDirection:
    """An algorithm's `direction`: the gradient at a fixed offset from the weights.

    Parameters
    ----------
    offset : callable
        offset(local) -> Tree, like the parameters, of what `begin` gave; it must not look at
        `local.params`.
    terms : callable
        terms(local) -> Affine, likewise.

    Examples
    --------
    >>> def offset(local):
    ...     return local.carry["offset"]
    >>> direction = OffsetDirection(offset)
    """

    offset: Callable[[Local], Tree]
    terms: Callable[[Local], Affine] = field(default_factory=_default_to_no_terms)

    def __call__(self, task: Task, local: Local, batch: Batch) -> Step:
        """Return the step along the gradient beside the weights, with the terms."""
        beside = tree.map(torch.add, local.params, self.offset(local))
        return add_terms(self.terms(local), task.grad(local, batch, params=beside), local)


def measure_length(values: Tree) -> Tensor:
    """Return the 2-norm of all numbers together, a little above 0."""
    lengths = [torch.linalg.vector_norm(leaf) for leaf in tree.leaves(values)]
    length: Tensor = torch.linalg.vector_norm(torch.stack(lengths))
    return length + LEAST_LENGTH


def _take_off(grad: Tree, dual: Tree, common: Tree) -> Tree:
    """Return g - dual - common."""
    return tree.map(lambda g, mu, s: g - (mu + s), grad, dual, common)


def _go(start: Tensor, way: Tensor, scale: Tensor) -> Tensor:
    """Return start + scale way, in one operation: small ones are much of a small model's step."""
    return torch.addcmul(start, way, scale.to(way.dtype))


def _find_way(ascent: Ascent, slope: Tree, params: Tree) -> tuple[Tree, Tensor]:
    """Return T^2 d, and rho / ||T d||."""
    sizes = {name: params[name].abs() + ascent.eta for name in ascent.sized}
    scaled = slope | {name: slope[name] * size for name, size in sizes.items()}
    way = scaled | {name: scaled[name] * size for name, size in sizes.items()}
    return way, ascent.rho / measure_length(scaled)


def _mix(mix: float | Tensor, first: Tree, second: Tree) -> Tree:
    """Return (1 - mix) first + mix second; 1 gives the second's bits."""
    if not isinstance(mix, Tensor) and mix == 1:
        return second
    return tree.map(lambda a, b: (1 - mix) * a + mix * b, first, second)
