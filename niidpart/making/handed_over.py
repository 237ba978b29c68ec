"""What is handed over beside a data set, and is cited by digest: labels of people, embeddings.

Neither is part of the data set, so its digest says nothing of them. The recipe holds theirs.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data, Features
from ..errors import UsageError
from ..features.relabelling import list_label_draws
from ..splits.recipe import Recipe, Transform

LABELS, EMBEDDINGS = "labels_sha256", "embeddings_sha256"  # the options that hold the digests


def cite_handed_over(recipe: Recipe, data: Data) -> Recipe:
    """Return the recipe with the digests of what was handed over, where it asks for them."""
    params = recipe.params
    if EMBEDDINGS in params and data.embeddings is not None:
        params = params | {EMBEDDINGS: digest_embeddings(data.embeddings)}
    transforms = [_cite_labels(step, data.noisy_labels) for step in recipe.transforms]
    return replace(recipe, params=params, transforms=tuple(transforms))


def _cite_labels(step: Transform, noisy_labels: Ints | None) -> Transform:
    if LABELS not in step.params or noisy_labels is None:
        return step
    return replace(step, params=step.params | {LABELS: digest_labels(noisy_labels)})


def require_handed_over(
    recipe: Recipe, data: Data, given: Mapping[str, NDArray[Any]] | None
) -> None:
    """Raise UsageError for other labels or embeddings than those that a recipe cites.

    given: stored draws, which stand for them.
    """
    missing = why_not_handed_over(recipe, data)
    if missing and not given:
        raise UsageError(missing)
    for wanted in _list_cited(recipe, LABELS):
        if data.noisy_labels is not None and wanted != digest_labels(data.noisy_labels):
            raise _refuse_other("labels of people (noisy_labels)", wanted)
    for wanted in _list_cited(recipe, EMBEDDINGS):
        if data.embeddings is not None and wanted != digest_embeddings(data.embeddings):
            raise _refuse_other("embeddings", wanted)


def why_not_handed_over(recipe: Recipe, data: Data) -> str:
    """Return which labels or embeddings a recipe cites and the data has not, "" for none."""
    lacking = []
    if _list_cited(recipe, LABELS) and data.noisy_labels is None:
        lacking.append("the labels of people (--noisy-labels FILE, noisy_labels=)")
    if _list_cited(recipe, EMBEDDINGS) and data.embeddings is None:
        lacking.append("the embeddings (--embeddings FILE, embeddings=)")
    if not lacking:
        return ""
    return f"the split was made with {' and '.join(lacking)}; hand them over with the data set"


def _list_cited(recipe: Recipe, option: str) -> list[str]:
    """Return the digests that a recipe holds under an option."""
    params = [recipe.params, *(step.params for step in recipe.transforms)]
    return [each[option] for each in params if each.get(option)]


def _refuse_other(what: str, wanted: str) -> UsageError:
    those = f"those had sha256 {str(wanted)[:12]}..."
    return UsageError(f"the split was made with other {what}: {those}; hand over those")


def digest_labels(labels: Ints) -> str:
    """Return the sha256 of class ids [N] as little-endian int64."""
    return hashlib.sha256(np.ascontiguousarray(labels, "<i8").tobytes()).hexdigest()


def digest_embeddings(embeddings: NDArray[Any]) -> str:
    """Return the sha256 of the shape and of the numbers [N, D] as little-endian float32."""
    numbers = np.ascontiguousarray(_to_float32(embeddings), "<f4")
    digest = hashlib.sha256(repr(numbers.shape).encode())
    digest.update(numbers.data)
    return digest.hexdigest()


def read_embeddings(data: Data) -> Features | None:
    """Return what gives the rows of embeddings that were handed over, None without any."""
    embeddings = data.embeddings
    if embeddings is None:
        return None

    def read_rows(rows: Ints | slice) -> NDArray[Any]:
        return _to_float32(embeddings[rows])  # as the digest has them: equal ones deal equally

    return read_rows


def _to_float32(numbers: NDArray[Any]) -> NDArray[np.float32]:
    """Return the numbers as float32; those that are too large for it are infinite, and refused."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32, copy=False)


def check_stored_labels(recipe: Recipe, draws: Mapping[str, NDArray[Any]], labels: Ints) -> str:
    """Return why stored labels of people are not those that the recipe cites, "" where they are.

    labels: [N] of the data set.
    """
    for name, wanted in zip(list_label_draws(recipe), _list_cited(recipe, LABELS), strict=False):
        seen = labels.copy()
        changed = draws.get(name)
        if changed is not None and changed.size:
            if changed.ndim != 2 or changed.shape[1] != 2 or changed.dtype.kind not in "iu":
                return f"/draws/{name} is no list of rows and labels"
            if changed[:, 0].min() < 0 or changed[:, 0].max() >= len(labels):
                return f"/draws/{name} names rows that are not there"
            seen[changed[:, 0]] = changed[:, 1]
        if digest_labels(seen) != wanted:
            return f"/draws/{name} is not of the labels that the recipe cites"
    return ""
