"""What an algorithm's functions of the server read and return: `Info`, `Plan`, `State`, `Served`.

Axes: P parties, M models, J jobs of a round, V models that are served, K classes.
"""

from dataclasses import dataclass, field, fields
from typing import NamedTuple

from torch import Tensor

from .tree import Tree, leaves


@dataclass(frozen=True, eq=False)
class Plan:
    """The jobs of a round, in any order: the executor runs them by ascending party, then model.

    Attributes
    ----------
    party, model : Tensor
        [J] int64 on the host.
    weight : Tensor or None
        [J] float64; None for the number of examples. A job of weight 0 trains and uploads nothing
        that counts (Ditto's personal models).
    keep : Tensor or None
        [J] bool, whose `own` is stored; None for all.
    shared : Tree
        Broadcast to all jobs. It is not moved to the device, so a number made on the host can be
        read without waiting for the device.
    each : Tree
        Sent to one job each: leading axis J.

    Examples
    --------
    Each party of the cohort trains model 0, and all weigh the same:

    >>> cohort = torch.tensor([2, 5])
    >>> same = torch.ones(len(cohort), dtype=torch.float64)
    >>> Plan(party=cohort, model=torch.zeros_like(cohort), weight=same).shared
    {}
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

    Attributes
    ----------
    models, buffers : Tree
        Leading axis M.
    server : Tree
        The algorithm's own.
    parties : Tree
        What each party keeps, leading axis P. The executor writes the rows of a round's cohort in
        place before `aggregate`, so an algorithm that compares rounds keeps a copy. All else is
        never changed.

    Examples
    --------
    >>> state = State(models={"w": torch.zeros(1, 3)}, buffers={}, server={"m": torch.zeros(3)})
    >>> state.n_models, sorted(state.parts)
    (1, ['buffers', 'models', 'parties', 'server'])
    """

    models: Tree
    buffers: Tree
    server: Tree = field(default_factory=dict)
    parties: Tree = field(default_factory=dict)

    @property
    def n_models(self) -> int:
        """M, the number of models."""
        return len(leaves(self.models)[0])

    @property
    def parts(self) -> dict[str, Tree]:
        """The trees by the names of the fields."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


class Served(NamedTuple):
    """What parties are evaluated with.

    Attributes
    ----------
    models, buffers : Tree
        Leading axis V.
    which : Tensor
        [P] int64 into that axis, or [1] where one model serves all.

    Examples
    --------
    Four parties, of which the last two share a model:

    >>> models = {"w": torch.zeros(3, 5)}
    >>> len(Served(models, buffers={}, which=torch.tensor([0, 1, 2, 2])).which)
    4
    """

    models: Tree
    buffers: Tree
    which: Tensor


class Info(NamedTuple):
    """What is known before training, on the host.

    Attributes
    ----------
    n : Tensor
        [P] int64, training examples.
    counts : Tensor
        [P, K] int64, examples of each class.
    beta : Tensor
        [P] float64, the MAP estimate of each party's Dirichlet concentration.
    shape : tuple of int
        Of one example as the model gets it.
    seed : int
        Of the run, for draws of the server.
    lr : float
        The largest of the run: schedules fall.
    model : Tensor or None
        [P] int64, which of the models that `init` is handed a party starts from: 0 but where they
        are of different shapes (`Algorithm.unlike_models`); None for 0 at all.

    Examples
    --------
    What `init` may start from, such as the classes that each party holds:

    >>> counts = torch.tensor([[5, 0], [3, 4]])
    >>> beta = torch.ones(2, dtype=torch.float64)
    >>> info = Info(counts.sum(1), counts, beta, shape=(1, 8, 8), seed=0, lr=0.01)
    >>> (info.counts > 0).sum(1)
    tensor([1, 2])
    """

    n: Tensor
    counts: Tensor
    beta: Tensor
    shape: tuple[int, ...]
    seed: int
    lr: float
    model: Tensor | None = None
