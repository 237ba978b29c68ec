"""`Task`: the model and the loss, as an algorithm sees them."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from torch import Tensor

from .job import Batch, Local, Out, Step
from .tree import Tree


class Task(Protocol):
    """A model and a loss. Any loss will do: a quadratic with a known optimum is a task too.

    Attributes
    ----------
    kinds : dict of str to str
        The name of each parameter to what it is: conv, linear, norm, bias or other.
    buffer_kinds : dict of str to str
        The name of each buffer to norm or other.
    n_stages : int
        How many taps `forward` gives; 0 where the model does not declare any.
    features_fault : str
        Why `Out.features` are not the input of the last layer, "" where they are. For an algorithm
        that needs them to refuse a model by.
    head : tuple of str
        The names of the layers that take the features; () where it is not known which.
    loss : callable
        loss(out, batch) -> scalar: what is minimised, the mean over the batch.

    Examples
    --------
    >>> from fltrain.tasks.model_task import ModelTask
    >>> task = ModelTask(torch.nn.Linear(2, 3))
    >>> params, buffers = task.split_weights()
    >>> task.forward(params, buffers, torch.zeros(4, 2), train=False).logits.shape
    torch.Size([4, 3])
    >>> def f(params):
    ...     return params["bias"].square().sum(), {}
    >>> grad, loss, _ = task.differentiate(f, params)
    >>> torch.equal(grad["bias"], 2 * params["bias"]), torch.count_nonzero(grad["weight"])
    (True, tensor(0))
    """

    @property
    def kinds(self) -> dict[str, str]: ...

    @property
    def buffer_kinds(self) -> dict[str, str]: ...

    @property
    def n_stages(self) -> int: ...

    @property
    def features_fault(self) -> str: ...

    @property
    def head(self) -> tuple[str, ...]: ...

    @property
    def loss(self) -> Callable[[Out, Batch], Tensor]: ...

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
        """Return the model's outputs.

        Parameters
        ----------
        params, buffers : Tree
            Of one model.
        x : Tensor
            [B, ...].
        train : bool
            In training mode, else in eval mode.
        key : int or Tensor or None
            For the draws of dropout in training; None for torch's own draws.
        upto : int or None
            The stage to stop after; None for all.
        detach : bool
            Let no gradient pass from one stage into the one before.

        Returns
        -------
        Out
            Where `upto` is given, the output of that stage is the last of `taps`.
        """
        ...

    def differentiate(
        self, f: Callable[[Tree], tuple[Tensor, Any]], params: Tree
    ) -> tuple[Tree, Tensor, Any]:
        """Return (gradient, loss, aux) of f(params) -> (loss, aux) at params.

        It is the one way to a gradient, since executors differ in how they take it.

        Parameters
        ----------
        f : callable
            Calls the model by `forward` with the parameters that it is given. loss: a scalar, that
            is returned without its graph. aux: a tree or a NamedTuple of tensors, returned
            untouched; {} for none.
        params : Tree
            A parameter that f does not use has gradient 0.

        Returns
        -------
        tuple of Tree, Tensor, object
            The gradient, like `params`; the loss; aux as f returned it.
        """
        ...

    def grad(
        self,
        local: Local,
        batch: Batch,
        extra: Callable[[Tree, Out], Tensor] | None = None,
        params: Tree | None = None,
        adjust: Callable[[Tensor], Tensor] | None = None,
    ) -> Step:
        """Return the step along the gradient of the loss.

        Parameters
        ----------
        local : Local
        batch : Batch
        extra : callable or None
            extra(params, out), a scalar, is added to the loss.
        params : Tree or None
            Where the gradient is taken; None for `local.params`.
        adjust : callable or None
            adjust(logits) -> [B, K], what the loss reads in the place of the logits.

        Returns
        -------
        Step
            With the gradient, the loss and the buffers after the pass. `carry` is that of `local`,
            and `after` is empty.
        """
        ...

    def full_grad(self, local: Local) -> Tree:
        """Return the mean gradient over all examples of the party at `local.params`.

        It is taken in eval mode: statistics of batch norm are frozen.

        Parameters
        ----------
        local : Local

        Returns
        -------
        Tree
            Like `local.params`.
        """
        ...

    def full_loss(
        self, local: Local, params: Tree | None = None, buffers: Tree | None = None
    ) -> Tensor:
        """Return the mean loss over all examples of the party.

        It is taken in eval mode: statistics of batch norm are frozen, nothing is dropped.

        Parameters
        ----------
        local : Local
        params, buffers : Tree or None
            Of which model; None for those of `local`.

        Returns
        -------
        Tensor
            A scalar, float64.
        """
        ...

    def sample_grad(
        self, local: Local, names: Iterable[str], share: float | Tensor, key: int | Tensor
    ) -> tuple[Tree, Tensor]:
        """Return (gradient, loss) over a random share of the party's examples.

        It is taken in eval mode, at `local.params`.

        Parameters
        ----------
        local : Local
        names : iterable of str
            The parameters whose gradient is asked for.
        share : float or Tensor
            Of n examples floor(share n) are drawn, at least one.
        key : int or Tensor
            Which examples they are; used for nothing else.

        Returns
        -------
        tuple of Tree, Tensor
            The mean gradient by name, and the mean loss.
        """
        ...
