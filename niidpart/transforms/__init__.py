"""What a party's examples look like: one file a transform, named after its option.

The folder is the registry, and a transform composes with any strategy. Each file ends in `ENTRY`, a
`FeatureTransform` or a `LabelTransform`. A transform sees numpy, niidpart's arithmetic, errors and
registry, and nothing else of the project; it has to give the same bits on every machine, as a
strategy does. What several share is in files that begin with `_`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..registry import Range, RecordRegistry

__all__ = [
    "TRANSFORMS",
    "FeatureTransform",
    "Fresh",
    "LabelTransform",
    "LabelView",
    "PartyTransform",
]

Fresh = Annotated[bool, "Each epoch draws new noise; else each example has its own for good."]


@dataclass(frozen=True, kw_only=True)
class PartyTransform:
    """What every transform has.

    Parameters
    ----------
    draw : callable
        `(n_parties, rng, *, options) -> {name: [P]}`, the columns to be stored, one value a party.
        A transform that can draw its noise again in each epoch has the option `fresh`.
    columns : mapping of str to tuple of Range
        The range of each column, whatever the options: of a file that holds another value nothing
        is applied. () for any finite number.
    paper : str
        The key of its paper in `niidpart/citing/references.bib`; "" where none is known.

    Examples
    --------
    >>> from niidpart.arithmetic.rng import stream
    >>> columns = TRANSFORMS.record("rotation").draw(3, stream(0, "example"), angle=90, turns=3)
    >>> sorted(columns["degrees"].tolist())
    [0.0, 90.0, 180.0]
    """

    draw: Callable[..., dict[str, NDArray[Any]]]
    columns: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)
    paper: str = ""


@dataclass(frozen=True, kw_only=True)
class FeatureTransform(PartyTransform):
    """A transform of the features of a party.

    Parameters
    ----------
    draw, columns, paper
        As those of `PartyTransform`.
    apply : callable
        `(x, rows, column, options) -> x`, features [n, ...] of one party, floats in [0, 1] before
        normalisation, never clipped; `column` holds that party's values. What it adds to an example
        depends on the column and the example's row alone, not on which rows are read with it. Fresh
        noise it leaves to training.

    Examples
    --------
    >>> from niidpart.arithmetic.rng import stream
    >>> noise = TRANSFORMS.record("noise")
    >>> columns = noise.draw(4, stream(0, "example"), sigma=0.1, level="linear", fresh=False)
    >>> columns["std"].round(3).tolist()
    [0.0, 0.033, 0.067, 0.1]
    """

    apply: Callable[[NDArray[Any], Ints, Mapping[str, Any], Mapping[str, Any]], NDArray[Any]]


class LabelView(NamedTuple):
    """What a transform of labels knows of the party that it is asked for.

    Parameters
    ----------
    column : mapping of str to object
        That party's values of the columns that the transform drew.
    options : mapping of str to object
        Of the transform.
    n_classes : int
    draws : mapping of str to array
        What the split stores of the transform besides its columns.

    Examples
    --------
    >>> LabelView(column={"seed": 1, "rate": 0.0}, options={}, n_classes=10, draws={}).n_classes
    10
    """

    column: Mapping[str, Any]
    options: Mapping[str, Any]
    n_classes: int
    draws: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class LabelTransform(PartyTransform):
    """A transform of the labels that a party trains by; who holds what is settled before it.

    Parameters
    ----------
    draw, columns, paper
        As those of `PartyTransform`.
    apply : callable
        `(y, rows, view) -> y`, class ids [n] of one party. What an example's label becomes depends
        on the view and the example's row alone, not on which rows are read with it.
    find : callable, optional
        `(labels, noisy_labels, options) -> {name: array}`, what is stored beside the columns: of
        the labels [N] of the data set and those that were handed over with it, None for none.
    finds : tuple of str
        The names of what `find` gives.

    Examples
    --------
    >>> import numpy as np
    >>> swap = TRANSFORMS.record("label-noise").apply
    >>> column = {"seed": 1, "rate": 1.0}
    >>> view = LabelView(column, options={"flips": "pair"}, n_classes=10, draws={})
    >>> swap(np.array([3, 9]), np.array([0, 1]), view).tolist()
    [4, 0]
    """

    apply: Callable[[Ints, Ints, LabelView], Ints]
    find: Callable[[Ints, Ints | None, Mapping[str, Any]], dict[str, NDArray[Any]]] | None = None
    finds: tuple[str, ...] = ()


TRANSFORMS = RecordRegistry("niidpart.transforms", "transform", PartyTransform, "draw")
