"""What an algorithm is: a record of pure functions, written for ONE job.

A job is one party that trains one model. Executors decide how jobs run: one after another, side by
side, stacked. An algorithm sees no other job, keeps nothing outside `State`, and owns neither the
optimiser nor the order of examples.

Axes: M models, S parties of the cohort, J jobs of a round, Q exams.

What the functions read and return (`fltrain/server.py`, `fltrain/job.py`, `fltrain/task.py`), the
ranges of options (`AtLeast`, ...) and `UsageError` stand here too, so that the file of an algorithm
finds all that it needs in one place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from torch import Tensor, nn

from niidpart.errors import UsageError
from niidpart.registry import Above, AtLeast, AtMost, Below, name_misspelt_parts

from .declared_traffic import DeclaredTraffic
from .job import Batch, Hyper, Local, Out, Step, Work
from .old_signatures import WITH_HYPER, adapt_old_signatures
from .server import Info, Plan, Served, State
from .task import Task
from .tree import Tree

__all__ = [
    "Above",
    "Algorithm",
    "AtLeast",
    "AtMost",
    "Batch",
    "Below",
    "Hyper",
    "Info",
    "Local",
    "Out",
    "Plan",
    "Provenance",
    "Served",
    "State",
    "Step",
    "Task",
    "UsageError",
    "Work",
]


@dataclass(frozen=True)
class Provenance:
    """How a constructor made an algorithm, so that a run can be taken up again.

    Attributes
    ----------
    spec : str
        The name of the constructor in the registry, or `file.py:function`.
    options : dict of str to object
        All its options.
    built : Algorithm
        What it gave, to see whether an algorithm still is that.

    Examples
    --------
    >>> fltrain.algorithms.moon(mu=1.0).provenance.spec
    'moon'
    """

    spec: str
    options: dict[str, Any]
    built: "Algorithm" = field(repr=False)


@name_misspelt_parts
@dataclass(frozen=True, eq=False)
class Algorithm:
    """A federated algorithm: functions for the server, functions for one job, and their numbers.

    Start from `fedavg()` and `dataclasses.replace` what differs. `hyper` holds all numbers of the
    algorithm: functions of the server get it as their last argument, those of a job find it in
    `local.hyper`.
    An executor may run `begin`, `direction` and `finish` for many jobs at once, by
    `torch.func.vmap`: no branch on a tensor, no writing into one, gradients by the task alone.

    Parameters
    ----------
    name : str
        For messages and files.
    init : callable
        (task, info, models, buffers, hyper) -> State; models, buffers: leading axis 1 (but for
        `unlike_models`).
    plan : callable
        (state, cohort [S], round, hyper) -> Plan.
    begin : callable
        (task, local) -> Local, before the first batch.
    direction : callable
        (task, local, batch) -> Step, for each batch.
    finish : callable
        (task, local, work) -> (upload, own); terms of the upload are weighted by `work.share`.
    aggregate : callable
        (state, plan, total, hyper) -> State; total: uploads summed per model [M, ...], float64.
    serve : callable
        (state, hyper) -> Served.
    hyper : Hyper
        The numbers. Those that are floats may differ between jobs that run at once.
    personal : callable or None
        (state, hyper) -> Served: models of the parties' own, evaluated besides those served.
    serve_new : callable or None
        (state, hyper) -> Served: what a party is given that never trained (`new_parties`), by its
        number in `which`; of several it takes the one that is best on its own validation part.
        None: the model that `serve` gives to all, and no new parties where there is no such one.
    adapt : callable or None
        (module, hyper) -> module: what is trained in place of the model asked for (MOON's head).
    traffic : callable or None
        (state, plan, task, hyper) -> (down [J], up [J]) bytes; None: down the model and what the
        plan sends (`shared`, `each`), up what `finish` uploads; nothing for a job of weight 0.
        It holds for the `plan` and the `finish` that it was given with: an algorithm that replaces
        one of them, and says nothing of its own, is counted as by None.
    exam : callable or None
        (state, plan, hyper) -> (party [Q], model [Q]): whose accuracy on whose validation part is
        wanted.
    grade : callable or None
        (state, plan, accuracy [Q], hyper) -> State: what is done with it.
    graded_by : {"accuracy", "loss"}
        What of an exam `grade` is handed: the accuracies, or the mean losses (FedFomo).
    describe : callable or None
        (state, hyper) -> {name: a number of no axis, or [P] one a party}: what is written down of
        its state where a run asks for `internals` (FedCD: which model each party prefers).
    decay : {"executor", "algorithm"}
        "algorithm": `direction` adds weight decay itself, from `local.hyper["weight_decay"]`, which
        the executor puts there (FedMOC: inside the mask).
    lockstep : {"step", "epoch"}
        What jobs that run at once have in common: the number of the batch, or the epoch too, since
        `direction` reads `batch.epoch` as a number (FedRL).
    optimizer : {"any", "sgd"}
        "sgd": the equations count on the steps of SGD at one learning rate, with a momentum that
        starts anew in each round (SCAFFOLD's option ii, FedNova). Nothing else is then trained
        with.
    features : bool
        Whether it reads `Out.features` (MOON), or asks which layer takes them (FedPer); where it
        does not, `--features-layer` is said to do nothing.
    settings : dict of str to object
        Settings that the algorithm cannot do without (pFedMe: momentum 0).
    model : str or None
        The model that it is made for, where none is asked for (FedNACA: of sigmoids).
    unlike_models : bool
        Whether parties may have models of different shapes (`--model cnn+mlp`): no model is sent
        or averaged. `init` is then handed one of each shape, leading axis M, `info.model` says
        which a party has, and `params` and `buffers` are rows that a task alone can read.
    pooled : bool
        Train as one party that holds what all hold; a row that two hold it has twice.
    provenance : Provenance or None
        How it was built. `algorithms.build` fills it in, and `replace` keeps it.

    Raises
    ------
    UsageError
        For a part, a `decay`, a `lockstep` or an `optimizer` that there is not.

    Examples
    --------
    FedAvg with the sign of each gradient:

    >>> from dataclasses import replace
    >>> def direction(task, local, batch):
    ...     step = task.grad(local, batch)
    ...     return step._replace(grad=fltrain.tree.map(torch.sign, step.grad))
    >>> replace(fltrain.algorithms.fedavg(), name="signs", direction=direction).name
    'signs'
    """

    name: str
    init: Callable[[Task, Info, Tree, Tree, Hyper], State]
    plan: Callable[[State, Tensor, int, Hyper], Plan]
    begin: Callable[[Task, Local], Local]
    direction: Callable[[Task, Local, Batch], Step]
    finish: Callable[[Task, Local, Work], tuple[Tree, Tree]]
    aggregate: Callable[[State, Plan, Tree, Hyper], State]
    serve: Callable[[State, Hyper], Served]
    hyper: Hyper = field(default_factory=dict)
    personal: Callable[[State, Hyper], Served] | None = None
    serve_new: Callable[[State, Hyper], Served] | None = None
    adapt: Callable[[nn.Module, Hyper], nn.Module] | None = None
    traffic: Callable[[State, Plan, Task, Hyper], tuple[Tensor, Tensor]] | None = None
    exam: Callable[[State, Plan, Hyper], tuple[Tensor, Tensor]] | None = None
    grade: Callable[[State, Plan, Tensor, Hyper], State] | None = None
    describe: Callable[[State, Hyper], Mapping[str, Tensor]] | None = None
    graded_by: Literal["accuracy", "loss"] = "accuracy"
    decay: Literal["executor", "algorithm"] = "executor"
    lockstep: Literal["step", "epoch"] = "step"
    optimizer: Literal["any", "sgd"] = "any"
    features: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    unlike_models: bool = False
    pooled: bool = False
    provenance: Provenance | None = None

    def __post_init__(self) -> None:
        if self.graded_by not in ("accuracy", "loss"):
            raise UsageError(f"graded_by is {self.graded_by!r}; it must be 'accuracy' or 'loss'")
        if self.decay not in ("executor", "algorithm"):
            raise UsageError(f"decay is {self.decay!r}; it must be 'executor' or 'algorithm'")
        if self.lockstep not in ("step", "epoch"):
            raise UsageError(f"lockstep is {self.lockstep!r}; it must be 'step' or 'epoch'")
        if self.optimizer not in ("any", "sgd"):
            raise UsageError(f"optimizer is {self.optimizer!r}; it must be 'any' or 'sgd'")
        if self.pooled and self.exam is not None:
            raise UsageError(
                f"{self.name} is pooled and has an exam, which grades models party by party; "
                "leave out one of them"
            )
        functions = {name: getattr(self, name) for name in WITH_HYPER}
        for name, function in adapt_old_signatures(self.name, functions).items():
            object.__setattr__(self, name, function)
        self._bind_traffic()

    def _bind_traffic(self) -> None:
        """Note of which functions `traffic` says the bytes, where that is new: not inherited."""
        said = self.traffic
        if said is None or isinstance(said, DeclaredTraffic):
            return
        bound = DeclaredTraffic(said, plan=self.plan, finish=self.finish)
        object.__setattr__(self, "traffic", bound)

    @property
    def declared_traffic(self) -> DeclaredTraffic | None:
        """`traffic`, where it says the bytes of this `plan` and `finish`; else None.

        What replaces one of them and leaves `traffic` as it was moves something else than that one
        knows of. `traffic=` that stands beside them says so anew.
        """
        said = self.traffic
        if not isinstance(said, DeclaredTraffic):
            return None
        return said if said.is_about(self.plan, self.finish) else None

    @property
    def spec(self) -> str:
        """The name that builds it again, with `options`; "" where nothing does.

        Nothing builds an algorithm that was made by hand, or changed since it was built: a run of
        `replace(fedavg(), direction=mine)` must not be taken up as plain FedAvg.
        """
        origin = self._origin()
        return "" if origin is None else origin.spec

    @property
    def options(self) -> dict[str, Any]:
        """What `spec` was built with; {} where there is none."""
        origin = self._origin()
        return {} if origin is None else origin.options

    def _origin(self) -> Provenance | None:
        """Return the provenance where each part still is the very one that was built."""
        if self.provenance is None:
            return None
        parts = [part.name for part in fields(self) if part.name != "provenance"]
        built = self.provenance.built
        is_as_built = all(getattr(self, part) is getattr(built, part) for part in parts)
        return self.provenance if is_as_built else None
