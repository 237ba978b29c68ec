"""Training that left the finite numbers: which round, which party, and why."""

import torch

from niidpart.errors import UsageError

from .. import tree
from ..inputs.examples import PartyExamples
from ..inputs.federated import Federated
from ..tree import Tree

_BATCH = 1000
# Features beyond this are no longer on the scale that the usual learning rates are made for.
LARGE = 100


class Diverged(UsageError):
    """Training is not finite any more.

    The message says the round, the party and the cause; earlier rounds and their checkpoints stand.

    Examples
    --------
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5, seed=0)
    >>> fltrain.run(split, model="hidden200", rounds=1, lr=1e30)
    Traceback (most recent call last):
    ...
    fltrain.engine.diverged.Diverged: round 1, party 0: the training loss is not finite, since ...
    """


def blame_party(round: int, party: int, start: Tree, data: Federated) -> Diverged:
    """Return the error for a party whose training loss is not finite.

    start: the model that it received.
    """
    cause = _find_cause(start, party, data.train)
    where = f"round {round}, party {data.find_number(party)}"
    return Diverged(f"{where}: the training loss is not finite, since {cause}")


def blame_server(round: int) -> Diverged:
    """Return the error for models that are not finite though all parties' losses were."""
    return Diverged(
        f"round {round}: the models are not finite after aggregation, "
        "though every party's loss was; lower --server-lr or --lr"
    )


def is_finite(values: Tree) -> bool:
    """Return whether all numbers of a tree are finite."""
    return all(bool(leaf.isfinite().all()) for leaf in tree.leaves(values))


def _find_cause(start: Tree, party: int, examples: PartyExamples) -> str:
    if not is_finite(start):
        return "the model that it received is not finite: lower --server-lr or --lr"
    largest = torch.zeros(())
    end = examples.indptr[party + 1]
    for first in range(examples.indptr[party], end, _BATCH):
        at = slice(first, min(first + _BATCH, end))
        x = examples.inputs(at)
        highest = x.abs().max().cpu()
        if not highest.isfinite():
            return "its features are not all finite numbers: mend the data"
        largest = torch.maximum(largest, highest)
    if largest > LARGE:
        return (
            f"its features reach {float(largest):.4g}: "
            "--normalise data brings them to one scale, or lower --lr"
        )
    return (
        "its steps grew without bound: "
        "lower --lr, or the options of the algorithm that scale its step"
    )
