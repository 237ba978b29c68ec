"""What a party's features look like: one file a transform, named after its option.

The folder is the registry, and a transform composes with any strategy. A file holds

- the function that `__all__` names first, `(n_parties, rng, *, options) -> {name: [P]}`: the
  columns to be stored, one value a party;
- `apply(x, rows, column, options) -> x`: features of one party, floats in [0, 1] before
  normalisation, never clipped; `column` holds that party's values.

What `apply` adds to an example depends on the party's column and the example's row alone, not on
which rows are read with it. A transform that can draw its noise again in each epoch has the option
`fresh`, and `apply` leaves that to training. A transform sees numpy, niidpart's arithmetic, errors
and registry, and nothing else of the project.
"""

from typing import Annotated

from ..registry import Registry

TRANSFORMS = Registry("niidpart.transforms", "transform")

Fresh = Annotated[bool, "Each epoch draws new noise; else each example has its own for good."]
