"""`ModelTask`: a torch module and a loss, as pure functions of parameters for algorithms to call."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from niidpart.errors import UsageError

from .. import tree
from ..draws import fold, signed
from ..interface import Batch, Local, Out, Step
from ..tree import Tree
from .dropout import draw_by, list_dropouts, replace_dropouts

_KINDS = {"Linear": "linear", "Conv": "conv", "Norm": "norm"}


def _kind(module: nn.Module) -> str:
    return next((k for part, k in _KINDS.items() if part in type(module).__name__), "other")


def cross_entropy(out: Out, batch: Batch) -> Tensor:
    """Mean cross entropy over the examples that are no padding."""
    if batch.mask is None:
        return F.cross_entropy(out.logits, batch.y)
    losses = F.cross_entropy(out.logits, batch.y, reduction="none")
    return (losses * batch.mask).sum() / batch.mask.sum().clamp(
        min=1
    )  # a batch of padding alone has loss and gradient 0


def _stages(
    module: nn.Module,
    layers: list[Any],
    staged: bool,
    params: Tree,
    buffers: Tree,
    x: Tensor,
    key: int | Tensor | None,
    upto: int | None,
    detach: bool,
) -> list[Tensor]:
    """The output of each stage; of a model that is not made of stages, its output. layers: its dropouts, which draw by the key."""
    options = {"upto": upto, "detach": detach, "taps": True} if staged else {}
    with draw_by(layers, key):
        out = functional_call(module, (params, buffers), (x,), options)
    return out if staged else [out]


@functools.cache
def _compiled() -> Callable[..., list[Tensor]]:
    """`_stages` through torch.compile, made when first asked for. One for all tasks: executors copy a task for each job, code is compiled once."""
    return torch.compile(_stages)


@dataclass(frozen=True, eq=False)
class ModelTask:
    """module: holds the architecture; its own parameters are never used. loss(out, batch) -> scalar.

    Dropouts in it are replaced by those of `fltrain.dropout`, in a copy.
    examples: the batches of the party at hand, for `full_grad`; the executor binds it for each job.
    bf16: forward passes under autocast to bfloat16; outputs and loss are float32. compiled: forward passes through torch.compile, which needs a C++
    compiler on a CPU and cannot stand inside `torch.func.vmap`. Both change the last bits.
    """

    module: nn.Module
    loss: Callable[[Out, Batch], Tensor] = cross_entropy
    examples: Callable[[], Iterable[Batch]] | None = None
    bf16: bool = False
    compiled: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "module", replace_dropouts(self.module))

    @cached_property
    def kinds(self) -> dict[str, str]:
        """name of each parameter -> conv, linear, norm, bias or other."""
        out = {}
        for path, module in self.module.named_modules():
            kind = _kind(module)
            for name, _ in module.named_parameters(recurse=False):
                out[f"{path}.{name}".lstrip(".")] = (
                    "bias" if name == "bias" and kind != "norm" else kind
                )
        return out

    @cached_property
    def buffer_kinds(self) -> dict[str, str]:
        """name of each buffer -> norm or other. A frozen parameter is a buffer too."""
        out = {
            name: self.kinds[name]
            for name, p in self.module.named_parameters()
            if not p.requires_grad
        }
        for path, module in self.module.named_modules():
            out |= {
                f"{path}.{name}".lstrip("."): _kind(module)
                for name, _ in module.named_buffers(recurse=False)
            }
        return {name: kind if kind == "norm" else "other" for name, kind in out.items()}

    @cached_property
    def n_stages(self) -> int:
        """How many taps a forward pass gives; 0 where the model does not declare any."""
        return len(list(self.module.children())) if self._staged else 0

    @cached_property
    def _staged(self) -> bool:
        return "upto" in inspect.signature(self.module.forward).parameters

    @cached_property
    def _dropouts(self) -> list[Any]:
        return list_dropouts(self.module)

    def forward(
        self,
        params: Tree,
        buffers: Tree,
        x: Tensor,
        *,
        train: bool,
        key: int | Tensor | None = None,
        upto: int | None = None,
        detach: bool = False,
    ) -> Out:
        """The model at `params`. upto: stop after that stage. detach: no gradient from one stage into the one before (local learning rules).

        A model that is not made of stages (`fltrain.models.Staged`) has one, its output. key: of the draws of dropout in training, for one step of
        one job; None for torch's own draws.
        """
        if self.module.training != train:
            self.module.train(train)
        if train:
            buffers = tree.clone(buffers)  # batch norm writes into what it is given
        try:
            taps = self._taps(params, buffers, x, upto, detach, key if train else None)
        except ValueError as error:
            if train and len(x) == 1 and "more than 1 value per channel" in str(error):
                raise UsageError(
                    "batch norm cannot train on a batch of one example; choose a --batch-size that leaves no such rest"
                ) from error
            raise
        return Out(taps[-1], taps[-2] if len(taps) > 1 else taps[-1], taps, buffers)

    def _taps(
        self,
        params: Tree,
        buffers: Tree,
        x: Tensor,
        upto: int | None,
        detach: bool,
        key: int | Tensor | None,
    ) -> list[Tensor]:
        run = _compiled() if self.compiled else _stages
        if self.compiled and isinstance(key, int):
            key = torch.tensor(
                signed(key), device=x.device
            )  # compiled code holds for one number, and for any tensor
        # no cache of cast weights: each is used once, and none may outlive a transform or a graph
        with (
            torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False)
            if self.bf16
            else contextlib.nullcontext()
        ):
            taps = run(
                self.module, self._dropouts, self._staged, params, buffers, x, key, upto, detach
            )
        return [tap.float() for tap in taps] if self.bf16 else taps

    def differentiate(
        self, f: Callable[[Tree], tuple[Tensor, Any]], params: Tree
    ) -> tuple[Tree, Tensor, Any]:
        """(gradient, loss, aux) of f(params) -> (loss, aux) at params, by torch's autograd; 0 for a parameter that f does not use."""
        at = tree.map(lambda w: w.detach().requires_grad_(), params)
        loss, aux = f(at)
        grads = torch.autograd.grad(
            loss, list(at.values()), allow_unused=True, materialize_grads=True
        )
        return dict(zip(at, grads, strict=True)), loss.detach(), aux

    def grad(
        self,
        local: Local,
        batch: Batch,
        extra: Callable[[Tree, Out], Tensor] | None = None,
        params: Tree | None = None,
    ) -> Step:
        """Gradient of the loss, plus `extra(params, out)` if given, at `params` (default: local.params). No weight decay: the executor adds it."""
        key = fold(local.key, batch.step) if self._dropouts else local.key

        def f(at: Tree) -> tuple[Tensor, Tree]:
            out = self.forward(at, local.buffers, batch.x, train=True, key=key)
            loss = self.loss(out, batch)
            return loss if extra is None else loss + extra(at, out), out.buffers

        grads, loss, buffers = self.differentiate(f, local.params if params is None else params)
        return Step(grads, loss, buffers, local.carry)

    def full_grad(self, local: Local) -> Tree:
        """Mean gradient over all examples of the party at local.params: one pass in eval mode, batch statistics frozen."""
        if self.examples is None:
            raise UsageError(
                "full_grad needs the examples of a party; an executor binds them for each job"
            )
        total, n = tree.zeros_like(local.params), 0
        for batch in self.examples():
            grads = self.differentiate(
                functools.partial(self._at_rest, local, batch), local.params
            )[0]
            size = len(batch.y) if batch.mask is None else batch.mask.sum()
            total = tree.map(lambda t, g, size=size: t + size * g, total, grads)
            n = n + size
        return tree.map(lambda t: t / n, total)

    def _at_rest(self, local: Local, batch: Batch, at: Tree) -> tuple[Tensor, Tree]:
        """The loss of a batch in eval mode."""
        return self.loss(self.forward(at, local.buffers, batch.x, train=False), batch), {}
