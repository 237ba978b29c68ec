"""What an algorithm is: a record of pure functions, written for ONE job (one party that trains one model).

Executors decide how jobs run: one after another, side by side, stacked. An algorithm sees no other job, keeps nothing outside `State`, and
owns neither the optimiser nor the order of examples. Axes: P parties, M models, J jobs of a round, B examples of a batch, K classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

from torch import Tensor, nn

from niidpart.errors import UsageError

from .old_signatures import WITH_HYPER, adapt_old_signatures
from .tree import Tree


class Batch(NamedTuple):
    """x [B, ...] floats, y [B] class ids. mask [B] is False on padding; None: no padding. epoch, step: counted from 0 within this local training;
    a tensor where jobs that run at once are in different epochs (`Algorithm.lockstep`)."""

    x: Tensor
    y: Tensor
    mask: Tensor | None
    epoch: int | Tensor
    step: int


class Out(NamedTuple):
    """logits [B, K]; features [B, D] before the last layer; taps: the output of each stage of the model, logits last; buffers after the pass."""

    logits: Tensor
    features: Tensor
    taps: list[Tensor]
    buffers: Tree


class Step(NamedTuple):
    """What one batch asks for. The executor adds weight decay to `grad`, puts it through momentum, adds `after`, and steps by the learning rate."""

    grad: Tree
    loss: Tensor
    buffers: Tree
    carry: Tree
    after: Tree = {}  # noqa: RUF012 - "nothing"; a tree is never changed in place


class Work(NamedTuple):
    """What a job did. steps: optimiser steps; n: examples; share: this job's weight in the mean of its model; lr, momentum: those of this round.
    first: 1 for the job of the lowest party among those that train the same model, else 0 (what cannot be averaged is taken from it).

    Numbers, or tensors where an executor runs many jobs at once: calculate with them, do not branch on them.
    """

    steps: float | Tensor
    n: float | Tensor
    share: float | Tensor
    lr: float | Tensor
    momentum: float | Tensor
    first: float | Tensor = 1.0


class Local(NamedTuple):
    """All that one job sees; no party axis anywhere."""

    params: Tree  # being trained
    buffers: Tree  # batch-norm statistics and the like, being updated
    start: Tree  # the weights received this round
    shared: Tree  # said to every job this round
    each: Tree  # said to this job alone
    own: Tree  # kept by the party between rounds
    carry: Tree  # lives for this local training only
    hyper: Tree  # the algorithm's numbers
    key: int | Tensor  # of this party, model and round, for counter-based draws (fltrain/draws.py)


@dataclass(frozen=True, eq=False)
class Plan:
    """The jobs of a round, in any order: the executor runs and sums them by ascending party, then model.

    party, model: [J] int64 on the host. weight: [J] float64, None for the number of examples; a job of weight 0 trains and uploads nothing that
    counts (Ditto's personal models). keep: [J] bool, whose `own` is stored; None for all. shared: one tree for all jobs, left where it is: a number
    made on the host can be read without waiting for the device. each: leading axis J.
    """

    party: Tensor
    model: Tensor
    weight: Tensor | None = None
    keep: Tensor | None = None
    shared: Tree = field(default_factory=dict)
    each: Tree = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class State:
    """All that outlives a round, so it is the checkpoint. Leaves are tensors.

    models, buffers: leading axis M. server: the algorithm's own. parties: what each party keeps, leading axis P; the executor writes the rows of a
    round's cohort in place before `aggregate`, so that an algorithm that compares rounds keeps a copy. All else is never changed.
    """

    models: Tree
    buffers: Tree
    server: Tree = field(default_factory=dict)
    parties: Tree = field(default_factory=dict)


class Served(NamedTuple):
    """What parties are evaluated with. models, buffers: leading axis V. which: [P] int64 into it, or [1] where one serves all."""

    models: Tree
    buffers: Tree
    which: Tensor


class Info(NamedTuple):
    """What is known before training, on the host. n: [P] training examples; counts: [P, K] of each class; beta: [P] the MAP estimate of each
    party's Dirichlet concentration, float64; shape: of one example as the model gets it; seed: of the run, for draws of the server;
    lr: of the first round."""

    n: Tensor
    counts: Tensor
    beta: Tensor
    shape: tuple[int, ...]
    seed: int
    lr: float


class Task(Protocol):
    """A model and a loss. Any loss will do: a quadratic with a known optimum is a task too."""

    @property
    def kinds(self) -> dict[str, str]:
        """Name of each parameter -> conv, linear, norm, bias, other."""
        ...

    @property
    def buffer_kinds(self) -> dict[str, str]:
        """Name of each buffer -> norm, other."""
        ...

    @property
    def n_stages(self) -> int:
        """How many taps `forward` gives; 0 where the model does not declare any."""
        ...

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
    ) -> Out: ...

    def differentiate(
        self, f: Callable[[Tree], tuple[Tensor, Any]], params: Tree
    ) -> tuple[Tree, Tensor, Any]:
        """(gradient, loss, aux) of f(params) -> (loss, aux) at params: the one way to a gradient, since executors differ in how they take it.

        loss: a scalar; returned without its graph. aux: a tree or a NamedTuple of tensors, returned as it is; {} for none. The gradient of a
        parameter that f does not use is 0. f calls the model by `forward` with the params that it is given.
        """
        ...

    def grad(
        self,
        local: Local,
        batch: Batch,
        extra: Callable[[Tree, Out], Tensor] | None = None,
        params: Tree | None = None,
    ) -> Step: ...

    def full_grad(self, local: Local) -> Tree: ...


Init = Callable[[Task, Info, Tree, Tree, Tree], State]


@dataclass(frozen=True, eq=False)
class Algorithm:
    """Start from `fedavg()` and `dataclasses.replace` what differs. An executor may run `begin`, `direction` and `finish` for many jobs at once, by
    `torch.func.vmap`: no branch on a tensor, no writing into one, gradients by the task alone.

    init(task, info, models, buffers, hyper) -> State       models, buffers: leading axis 1
    plan(state, cohort [S], round, hyper) -> Plan
    begin(task, local) -> Local                           before the first batch
    direction(task, local, batch) -> Step                 for each batch
    finish(task, local, work) -> (upload, own)            upload: terms already weighted by work.share
    aggregate(state, plan, total, hyper) -> State                total: uploads summed per model [M, ...], float64, in ascending job order
    serve(state, hyper) -> Served
    personal(state, hyper) -> Served                             optional: models of the parties' own, evaluated beside those served
    adapt(module, hyper) -> module                               optional: what it trains instead of the model asked for (MOON: with a projection head)
    traffic(state, plan, task, hyper) -> (down [J], up [J])      bytes; None: one model each way
    exam(state, plan, hyper) -> (party [Q], model [Q])           optional: whose accuracy on whose validation part is wanted
    grade(state, plan, accuracy [Q], hyper) -> State             optional: what is done with it

    decay="algorithm": `direction` adds weight decay itself (FedMOC: inside the mask), from local.hyper["weight_decay"].
    lockstep: what jobs that run at once have in common: "step", the number of the batch; "epoch", the epoch too, since `direction` reads batch.epoch
    as a number (FedRL).
    settings: those that the algorithm cannot do without (pFedMe: momentum 0).
    model: the one that it is made for, where none is asked for (FedNACA: of sigmoids).
    pooled: train as one party that holds what all hold; a row that two hold it has twice.
    """

    name: str
    init: Init
    plan: Callable[[State, Tensor, int, Tree], Plan]
    begin: Callable[[Task, Local], Local]
    direction: Callable[[Task, Local, Batch], Step]
    finish: Callable[[Task, Local, Work], tuple[Tree, Tree]]
    aggregate: Callable[[State, Plan, Tree, Tree], State]
    serve: Callable[[State, Tree], Served]
    hyper: Tree = field(default_factory=dict)
    personal: Callable[[State, Tree], Served] | None = None
    adapt: Callable[[nn.Module, Tree], nn.Module] | None = None
    traffic: Callable[[State, Plan, Task, Tree], tuple[Tensor, Tensor]] | None = None
    exam: Callable[[State, Plan, Tree], tuple[Tensor, Tensor]] | None = None
    grade: Callable[[State, Plan, Tensor, Tree], State] | None = None
    decay: Literal["executor", "algorithm"] = "executor"
    lockstep: Literal["step", "epoch"] = "step"
    settings: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    pooled: bool = False
    spec: str = field(
        default="", init=False
    )  # with options: what `algorithms.build` was given, so that a run can be taken up again.
    options: dict[str, Any] = field(
        default_factory=dict, init=False
    )  # not copied by `replace`: what is changed has no name

    def __post_init__(self) -> None:
        if self.decay not in ("executor", "algorithm"):
            raise UsageError(f"decay is {self.decay!r}; it must be 'executor' or 'algorithm'")
        if self.lockstep not in ("step", "epoch"):
            raise UsageError(f"lockstep is {self.lockstep!r}; it must be 'step' or 'epoch'")
        functions = {name: getattr(self, name) for name in WITH_HYPER}
        for name, function in adapt_old_signatures(self.name, functions).items():
            object.__setattr__(self, name, function)
