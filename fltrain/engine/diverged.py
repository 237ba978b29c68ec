"""Training that left the finite numbers: which round, which party, and why."""

import torch

from .. import tree
from ..inputs.federated import PartyExamples
from ..tree import Tree

_BATCH = 1000
LARGE = 100  # features beyond this are no longer on the scale that the usual learning rates are made for


class Diverged(ValueError):
    """Training is not finite any more. The message says the round, the party and the cause; earlier rounds and their checkpoints stand."""


def at_party(round: int, party: int, start: Tree, examples: PartyExamples) -> Diverged:
    """The error for a party whose training loss is not finite. start: the model that it received."""
    return Diverged(
        f"round {round}, party {party}: the training loss is not finite, since {_cause(start, party, examples)}"
    )


def at_server(round: int) -> Diverged:
    """The error for a round that ends with a model that is not finite though all parties' losses were."""
    return Diverged(
        f"round {round}: the models are not finite after aggregation, though every party's loss was; lower --server-lr or --lr"
    )


def finite(values: Tree) -> bool:
    return all(bool(leaf.isfinite().all()) for leaf in tree.leaves(values))


def _cause(start: Tree, party: int, examples: PartyExamples) -> str:
    if not finite(start):
        return "the model that it received is not finite: lower --server-lr or --lr"
    largest = torch.zeros(())
    for a in range(examples.indptr[party], examples.indptr[party + 1], _BATCH):
        x = examples.inputs(slice(a, min(a + _BATCH, examples.indptr[party + 1]))).abs().max().cpu()
        if not x.isfinite():
            return "its features are not all finite numbers: mend the data"
        largest = torch.maximum(largest, x)
    if largest > LARGE:
        return f"its features reach {float(largest):.4g}: --normalise data brings them to one scale, or lower --lr"
    return "its steps grew without bound: lower --lr, or the options of the algorithm that scale its step"
