"""Labels as a party sees them: the transforms of a recipe that change labels."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..errors import UsageError
from ..splits.recipe import Recipe
from ..splits.view import SplitView
from ..transforms import TRANSFORMS, LabelTransform, LabelView

# Parts whose labels are as the party has them: it cannot know which are wrong. A test part says
# how good a model is, and that is measured by the truth.
RELABELLED = ("train", "val")


def list_label_steps(recipe: Recipe) -> list[tuple[str, LabelTransform, Mapping[str, Any]]]:
    """Return (prefix, record, options) of each transform of labels, in order."""
    steps: list[tuple[str, LabelTransform, Mapping[str, Any]]] = []
    for name, step in recipe.named_transforms:
        record = TRANSFORMS.record(step.name)
        if isinstance(record, LabelTransform):
            steps.append((name, record, step.params))
    return steps


def find_label_draws(data: Data, recipe: Recipe) -> dict[str, NDArray[Any]]:
    """Return what the transforms of labels store besides their columns, by `<name>_<draw>`."""
    draws: dict[str, NDArray[Any]] = {}
    for name, record, options in list_label_steps(recipe):
        if record.find is not None:
            found = record.find(data.labels, data.noisy_labels, options)
            draws |= {f"{name}_{key}": value for key, value in found.items()}
    return draws


def list_label_draws(recipe: Recipe) -> list[str]:
    """Return the names of the draws that `find_label_draws` gives."""
    steps = list_label_steps(recipe)
    return [f"{name}_{key}" for name, record, _ in steps for key in record.finds]


def relabel(split: SplitView, y: Ints, party: int, rows: Ints) -> Ints:
    """Return labels as a party sees them: with the label noise of the split.

    Training and validation parts have them; test parts keep the labels of the data set.

    Parameters
    ----------
    split : FederatedSplit or OpenedSplit
    y : array of int [n]
        Class ids of `rows`, as the data set has them.
    party : int
    rows : array of int [n]
        Rows of the data set; whether a label is wrong depends on its row.

    Returns
    -------
    array of int64 [n]
        Without a transform of labels `y` itself.

    Raises
    ------
    UsageError
        For as many labels as there are not rows.

    Examples
    --------
    >>> import niidpart
    >>> data = niidpart.load("digits")
    >>> split = niidpart.make(data, "label-noise", rate=0.5, n_parties=3)
    >>> rows = split.train.party(2)
    >>> seen = niidpart.relabel(split, data.labels[rows], 2, rows)
    >>> round(float((seen != data.labels[rows]).mean()), 2)
    0.53
    """
    steps = list_label_steps(split.recipe)
    if not steps:
        return y
    if len(y) != len(rows):
        raise UsageError(
            f"there are {len(y)} labels and {len(rows)} rows; one label a row is needed"
        )
    values = split.party_values(party)
    n_classes = len(split.source.class_names)
    for name, record, options in steps:
        view = LabelView(
            column=_select(values, name),
            options=options,
            n_classes=n_classes,
            draws={} if record.find is None else _select(split.draws, name),
        )
        y = record.apply(y, np.asarray(rows, np.int64), view)
    return y


def relabel_parties(
    split: SplitView, y: Ints, rows: Ints, parties: list[int], indptr: list[int]
) -> Ints:
    """Return the labels y [n] of rows [n] of some parties, which stand one after another."""
    if not list_label_steps(split.recipe):
        return y
    seen = np.empty_like(y)
    for number, party in enumerate(parties):
        mine = slice(indptr[number], indptr[number + 1])
        seen[mine] = relabel(split, y[mine], party, rows[mine])
    return seen


def _select(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the values of one transform, by their names without its own."""
    prefix = f"{name}_"
    own = [key for key in values if key.startswith(prefix)]
    return {key.removeprefix(prefix): values[key] for key in own}
