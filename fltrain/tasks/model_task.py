"""`ModelTask`: a torch module and a loss, as pure functions of parameters for algorithms."""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn

from niidpart.errors import UsageError

from .. import tree
from ..draws import fold, to_int64
from ..interface import Batch, Local, Out, Step
from ..tree import Tree
from .dropout import replace_dropouts
from .kinds import find_buffer_kinds, find_parameter_kinds
from .losses import Loss, OwnLoss, cross_entropy
from .passes import Passable, compile_stages, make_batch_fault, run_stages
from .whole_parties import average_grads, average_losses, draw_share


@dataclass(frozen=True, eq=False)
class ModelTask:
    """A torch module and a loss as pure functions of parameters.

    module: holds the architecture; its own parameters are never used. Dropouts in it are replaced
    by those of `fltrain.tasks.dropout`, in a copy. loss(out, batch) -> scalar; test_loss: what
    models are evaluated by, which is not smoothed.
    examples: the batches of one party, for `full_grad`; an executor binds them for each job by
    `bind_examples`.
    bf16: forward passes under autocast to bfloat16; outputs and loss are float32. compiled: forward
    passes through torch.compile, which needs a C++ compiler on a CPU and cannot stand inside
    `torch.func.vmap`. Both change the last bits.
    no_features: why no layer is known whose input are the features of a plain module, and what to
    do; it counts only where there is none (`fltrain.feature_layer`).
    """

    module: nn.Module
    loss: Loss = cross_entropy
    examples: Callable[[], Iterable[Batch]] | None = None
    bf16: bool = False
    compiled: bool = False
    test_loss: Loss = cross_entropy
    no_features: str = "no layer is known whose input they are"

    def __post_init__(self) -> None:
        object.__setattr__(self, "module", replace_dropouts(self.module))
        # looked at here once, and not by each job's copy: compiled code holds for one object
        _ = self._passable

    def bind_examples(self, examples: Callable[[], Iterable[Batch]]) -> Self:
        """Return this task with the examples of one party.

        It is done for each job, so the copy is shallow: it shares the module, and keeps what is
        known of it (kinds, dropouts, stages). `dataclasses.replace` would look all that up again,
        which takes 0.3 ms for a ResNet-18.
        """
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__, examples=examples)
        return bound

    def split_weights(self) -> tuple[Tree, Tree]:
        """Return (parameters that are trained, frozen ones and buffers), without a graph."""
        trained: Tree = {}
        fixed: Tree = {}
        for name, weight in self.module.named_parameters():
            part = trained if weight.requires_grad else fixed
            part[name] = weight.detach()
        for name, buffer in self.module.named_buffers():
            fixed[name] = buffer.detach()
        return trained, fixed

    def make_starts(self) -> tuple[Tree, Tree]:
        """Return what runs start from, as `split_weights` does: copies, leading axis 1."""
        trained, fixed = self.split_weights()
        return tree.repeat(trained, 1), tree.repeat(fixed, 1)

    def find_part(self, params: Tree, buffers: Tree) -> "tuple[ModelTask, Tree, Tree]":
        """Return the model that weights are of, as a task, and these by its own names."""
        return self, params, buffers

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Name of each parameter -> conv, linear, norm, bias or other."""
        return find_parameter_kinds(self.module)

    @cached_property
    def buffer_kinds(self) -> dict[str, str]:
        """Name of each buffer -> norm or other. A frozen parameter is a buffer too."""
        return find_buffer_kinds(self.module)

    @property
    def n_stages(self) -> int:
        """How many taps a forward pass gives; 0 where the model does not declare any.

        An nn.Sequential declares them by its layers (`fltrain/tasks/stages.py`).
        """
        return self._passable.n_stages

    @property
    def features_fault(self) -> str:
        """Why `Out.features` are not the input of the last layer, "" where they are."""
        if self._passable.is_tapped or self.n_stages > 1:
            return ""
        if self.n_stages == 1:
            return "this model declares 1 stages, so that there is nothing before its last layer"
        return self.no_features

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the layers that take the features; () where it is not known which."""
        return () if self.features_fault else self._passable.head

    @cached_property
    def _passable(self) -> Passable:
        return Passable.of(self.module)

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
        """Return the outputs of the model at `params`.

        upto: stop after that stage; a model that is not made of stages (`fltrain.models.Staged`,
        nn.Sequential) has one, its output. detach: no gradient from one stage into the one before
        (local learning rules). key: of the draws of dropout in training, for one step of one job;
        None for torch's own draws.
        """
        if self.module.training != train:
            self.module.train(train)
        if train:
            buffers = tree.clone(buffers)  # batch norm writes into its argument
        try:
            taps, heard = self._run(
                params=params,
                buffers=buffers,
                x=x,
                upto=upto,
                detach=detach,
                key=key if train else None,
            )
        except ValueError as error:
            if train and len(x) == 1 and "more than 1 value per channel" in str(error):
                raise make_batch_fault() from error
            raise
        features = taps[-2] if len(taps) > 1 else taps[-1]
        if heard:
            features = heard[-1]
        return Out(taps[-1], features, taps, buffers)

    def _run(
        self,
        params: Tree,
        buffers: Tree,
        x: Tensor,
        upto: int | None,
        detach: bool,
        key: int | Tensor | None,
    ) -> list[list[Tensor]]:
        """Return taps and features in float32: compiled or under autocast if the task says so."""
        run = compile_stages() if self.compiled else run_stages
        if self.compiled and isinstance(key, int):
            # compiled code holds for one number, and for any tensor
            key = torch.tensor(to_int64(key), device=x.device)
        cast: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if self.bf16:
            # no cache of cast weights: each is used once, and none may outlive a transform
            cast = torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False)
        with cast:
            outputs = run(self._passable, params, buffers, x, key, upto, detach)
        if not self.bf16:
            return outputs
        return [[output.float() for output in part] for part in outputs]

    def require_logits(self, x: Tensor, n_classes: int) -> None:
        """Raise UsageError where the model does not turn examples x [B, ...] into [B, K]."""
        trained, fixed = self.split_weights()
        try:
            with torch.no_grad():
                logits = self.forward(trained, fixed, x, train=False).logits
        except RuntimeError as error:
            shape = tuple(x.shape[1:])
            raise UsageError(f"the model cannot take examples of shape {shape}: {error}") from error
        needed = (len(x), n_classes)
        if tuple(logits.shape) != needed:
            raise UsageError(
                f"the model gives {tuple(logits.shape)} for {len(x)} examples; "
                f"{needed}, a number for each class, is needed"
            )

    def differentiate(
        self, f: Callable[[Tree], tuple[Tensor, Any]], params: Tree
    ) -> tuple[Tree, Tensor, Any]:
        """Return (gradient, loss, aux) of f(params) -> (loss, aux) at params.

        By torch's autograd; 0 for a parameter that f does not use.
        """
        at = {name: weight.detach().requires_grad_() for name, weight in params.items()}
        loss, aux = f(at)
        weights = list(at.values())
        grads = torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
        return dict(zip(at, grads, strict=True)), loss.detach(), aux

    def try_step(
        self,
        trained: Tree,
        fixed: Tree,
        batch: Batch,
        key: int | Tensor,
    ) -> tuple[Tree, Tensor]:
        """Return (gradient, loss) of a batch in training, apart from any job.

        trained, fixed: as of `split_weights`. key: of the draws of dropout.
        """

        def loss_at(at: Tree) -> tuple[Tensor, Tree]:
            out = self.forward(at, fixed, batch.x, train=True, key=key)
            return self.loss(out, batch), {}

        gradient, loss, _ = self.differentiate(loss_at, trained)
        return gradient, loss

    def grad(
        self,
        local: Local,
        batch: Batch,
        extra: Callable[[Tree, Out], Tensor] | None = None,
        params: Tree | None = None,
        adjust: Callable[[Tensor], Tensor] | None = None,
    ) -> Step:
        """Return the gradient of the loss, plus that of `extra(params, out)` unless it is None.

        params: where; None for local.params. adjust: what the loss reads of the logits. No weight
        decay: the executor adds it.
        """
        key = fold(local.key, batch.step) if self._passable.dropouts else local.key

        def loss_at(at: Tree) -> tuple[Tensor, Tree]:
            out = self.forward(at, local.buffers, batch.x, train=True, key=key)
            seen = out if adjust is None else out._replace(logits=adjust(out.logits))
            loss = self.loss(seen, batch)
            if extra is not None:
                loss = loss + extra(at, out)
            return loss, out.buffers

        where = local.params if params is None else params
        grads, loss, buffers = self.differentiate(loss_at, where)
        return Step(grads, loss, buffers, local.carry)

    def full_grad(self, local: Local) -> Tree:
        """Return the mean gradient over all examples of the party at local.params.

        One pass in eval mode: batch statistics are frozen.
        """
        grads, _ = average_grads(self, local, local.params, self._list_examples())
        return grads

    def full_loss(
        self, local: Local, params: Tree | None = None, buffers: Tree | None = None
    ) -> Tensor:
        """Return the mean loss over all examples of the party, float64.

        One pass in eval mode. params, buffers: of which model; None for those of local.
        """
        at = local.params if params is None else params
        there = local.buffers if buffers is None else buffers
        return average_losses(self, local._replace(buffers=there), at, self._list_examples())

    def sample_grad(
        self, local: Local, names: Iterable[str], share: float | Tensor, key: int | Tensor
    ) -> tuple[Tree, Tensor]:
        """Return (gradient of these parameters, loss) over a share that key draws, in eval mode."""
        if isinstance(self.loss, OwnLoss):
            raise UsageError(
                f"the loss {self.loss.name} takes whole batches, and a share of the examples was "
                "asked for; leave out --loss"
            )
        batches = draw_share(list(self._list_examples()), share, key)
        some = {name: local.params[name] for name in names}
        return average_grads(self, local, some, batches)

    def _list_examples(self) -> Iterable[Batch]:
        """Return all examples of the party in batches, in order."""
        if self.examples is None:
            raise UsageError(
                "full_grad, full_loss and sample_grad need the examples of a party; an executor "
                "binds them for each job"
            )
        return self.examples()
