"""What callers hand over, made arrays and texts or refused."""

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..arithmetic.words import Array
from ..errors import UsageError


def require_texts(what: str, texts: object) -> None:
    """Raise UsageError unless these are several texts; one text is not a sequence of letters."""
    needed = "a list of texts is needed"
    if isinstance(texts, str) or not isinstance(texts, Sequence | np.ndarray):
        raise UsageError(f"{what} is {str(texts)[:80]!r}; {needed}")
    for text in texts:
        if not isinstance(text, str):
            raise UsageError(f"{what} holds {text!r}, which is no text; {needed}")


def to_array(what: str, values: ArrayLike) -> Array:
    """Return the values as an array; UsageError where that would lose or guess something."""
    if _is_masked(values):
        raise UsageError(f"{what} are a masked array; fill or drop the masked values first")
    if hasattr(values, "toarray"):  # sparse: numpy would make one object of it
        raise UsageError(f"{what} are sparse; give .toarray() of them")
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:  # ragged lists, tensors on a GPU
        raise UsageError(f"{what} cannot be made an array ({error})") from error


def _is_masked(values: object) -> bool:
    """Return whether this is a masked array, without an import of numpy.ma.

    That takes as long as a small split. Whoever made a masked array has imported it.
    """
    module = sys.modules.get("numpy.ma")
    return module is not None and isinstance(values, module.MaskedArray)
