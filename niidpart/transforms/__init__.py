"""What a party's features look like: one file a transform, named after its option; the folder is the registry. Composes with any strategy.

The function that `__all__` names first gives the columns to be stored, one value a party: `(n_parties, rng, *, options) -> {name: [P]}`.
Beside it stands `apply(x, rows, column, options) -> x`: features of one party, floats in [0, 1] before normalisation, never clipped;
`column` holds that party's values. A transform that is drawn anew in training has the option `fresh`, and `apply` leaves it alone.
It sees numpy, `niidpart.arithmetic` and nothing else of the project.
"""

from typing import Annotated

from ..registry import Registry

TRANSFORMS = Registry("niidpart.transforms", "transform")

Fresh = Annotated[bool, "Noise is drawn anew each epoch; else each example has its own for good."]
