"""A split and its data set as tensors on the device, copied as rarely as can be."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

import niidpart
from niidpart.arithmetic.rng import Ints
from niidpart.data import Data, Features
from niidpart.errors import UsageError
from niidpart.splits.part import Part

from ..settings import Settings
from .examples import PartyExamples, Preparation
from .federated import Federated
from .noises import make_noises
from .normalisation import make_normalisation

# Bytes from which on the parties read the rows of the data set itself. Less is copied, in the order
# of the parties, which is a few per cent faster to read.
SHARED_FROM = 1 << 28
_PIECE = 1 << 26  # bytes copied at a time
_DEFAULT = Settings()


class _Loading(NamedTuple):
    """Where examples come from, and where they go.

    shared: the features of all rows, where parties read those; None where they have copies.
    """

    split: niidpart.FederatedSplit
    labels: Ints
    features: Features
    shared: Tensor | None
    device: torch.device


def load_federated(
    split: niidpart.FederatedSplit,
    data: Data,
    device: torch.device,
    settings: Settings = _DEFAULT,
    held_out: Sequence[int] = (),
) -> Federated:
    """Return what the parties of a split hold, gathered once for all runs on it.

    settings: what is done to each batch, but for what a run does with draws of its own
    (`Federated.prepare_for`). held_out: the parties that never train, ascending. Examples lie in
    the order of their parties; a data set that is read where it lies stays there. UsageError where
    there is nothing to train on, or to measure what is asked for.
    """
    features = _require_features(data)
    _require_test_set(split, data, settings)
    shared = None
    if _can_share(split):
        shared = share_features(features, len(data.labels), device)
    source = _Loading(split, data.labels, features, shared, device)
    trained = sorted(set(range(split.n_parties)).difference(held_out))
    train, val, test = _gather_parts(source, trained)
    of_new = _gather_parts(source, held_out) if held_out else None
    global_test = _gather_global_test(data, device)
    # What is fitted to training rows is fitted to those of parties that train.
    normalise = make_normalisation(settings.normalise, train.x, train.places)
    shape = tuple(train.x.shape[1:])
    noises = make_noises(split, shape, device, fixed=settings.noisy_test)
    fresh = tuple(noise for noise in noises if noise.is_fresh)
    of_party = Preparation(noise=fresh, normalise=normalise)
    noisy_test = None
    if global_test is not None:
        global_test = replace(global_test, prepare=Preparation(normalise=normalise))
        if settings.noisy_test:
            # Its rows are numbered after those of the data: no noise of training again.
            rows = global_test.rows + len(data.labels)
            shown = Preparation(noise=noises, normalise=normalise)
            noisy_test = replace(global_test, rows=rows, prepare=shown)
    federated = Federated(
        train=replace(train, prepare=of_party),
        val=replace(val, prepare=of_party),
        test=replace(test, prepare=of_party),
        global_test=global_test,
        counts=_count_classes(split, trained),
        shape=shape,
        n_classes=len(data.class_names),
        noisy_test=noisy_test,
    )
    if of_new is None:
        return federated
    train, val, test = of_new
    new = replace(
        federated,
        train=replace(train, prepare=of_party),
        val=replace(val, prepare=of_party),
        test=replace(test, prepare=of_party),
        global_test=None,
        counts=_count_classes(split, held_out),
        noisy_test=None,
        numbers=tuple(held_out),
        n_of_split=split.n_parties,
    )
    return replace(federated, numbers=tuple(trained), n_of_split=split.n_parties, new_parties=new)


def _require_features(data: Data) -> Features:
    if data.features is None:
        raise UsageError("the data has labels but no features; there is nothing to train on")
    return data.features


def _require_test_set(split: niidpart.FederatedSplit, data: Data, settings: Settings) -> None:
    """Raise UsageError where nothing can be evaluated, or not as the settings ask for."""
    is_global = data.test_labels is not None and data.test_features is not None
    if split.test.n == 0 and not is_global:
        raise UsageError(
            "there is no test set anywhere; make the split with a part for it: "
            "niidpart make ... --test 0.2"
        )
    if settings.noisy_test and not is_global:
        raise UsageError(
            "noisy-test needs a test set of the data set's own, and there is none; "
            "the parties' own test parts carry their noise anyway"
        )
    if settings.noisy_test and not split.recipe.transforms:
        raise UsageError(
            "noisy-test needs a split with noise, and this one has none; "
            "make it with --transform noise, or leave --noisy-test away"
        )


def _can_share(split: niidpart.FederatedSplit) -> bool:
    """Return whether parties can read the rows of the data set itself, most of which they hold."""
    n_dealt = sum(len(part.indices) for part in split.parts.values())
    return not split.recipe.transforms and 2 * n_dealt >= split.source.n


def _count_classes(split: niidpart.FederatedSplit, parties: Sequence[int]) -> Tensor:
    """Return how many training examples of each class some parties have, [P, K] int64."""
    return torch.from_numpy(split.train.counts[list(parties)].astype(np.int64))


def _gather_parts(
    source: _Loading, parties: Sequence[int]
) -> tuple[PartyExamples, PartyExamples, PartyExamples]:
    """Return the train, val and test examples of some parties."""
    train, val, test = (_gather_part(source, part, parties) for part in source.split.parts.values())
    return train, val, test


def _gather_part(source: _Loading, part: Part, parties: Sequence[int]) -> PartyExamples:
    """Return what some parties have of a part, with transforms that are the same in every epoch."""
    of_party = [part.indices[part.indptr[p] : part.indptr[p + 1]] for p in parties]
    on_host = np.concatenate(of_party).astype(np.int64)
    indptr = np.cumsum([0, *map(len, of_party)])
    rows = torch.from_numpy(on_host).to(source.device)
    if source.split.recipe.transforms and len(rows):
        x = _transform_rows(source, on_host, parties, indptr)
    elif source.shared is None:
        x = copy_features(source.features, on_host, source.device)
    else:
        x = source.shared
    party = np.repeat(np.array(parties, np.int64), np.diff(indptr))
    return PartyExamples(
        x=x,
        y=torch.from_numpy(source.labels[on_host]).to(source.device),
        indptr=indptr.tolist(),
        rows=rows,
        party=torch.from_numpy(party).to(source.device),
        places=None if source.shared is None else rows,
    )


def _transform_rows(source: _Loading, rows: Ints, parties: Sequence[int], indptr: Ints) -> Tensor:
    """Return the features of rows as their parties see them."""
    x = source.features(rows)
    seen: Tensor | None = None
    for number, party in enumerate(parties):
        mine = slice(indptr[number], indptr[number + 1])
        its = put_channels_first(niidpart.transform(source.split, x[mine], party, rows[mine]))
        if seen is None:
            seen = torch.empty((len(rows), *its.shape[1:]), dtype=its.dtype, device=source.device)
        seen[mine] = its
    assert seen is not None  # a split has a party
    return seen


def _gather_global_test(data: Data, device: torch.device) -> PartyExamples | None:
    """Return the data set's own test set; None where it has none."""
    if data.test_labels is None or data.test_features is None:
        return None
    n = len(data.test_labels)
    rows = torch.arange(n, device=device)
    return PartyExamples(
        x=hold_features(data.test_features(slice(None)), device),
        y=torch.from_numpy(data.test_labels).to(device),
        indptr=[0, n],
        rows=rows,
        party=torch.zeros_like(rows),
    )


def share_features(features: Features, n_rows: int, device: torch.device) -> Tensor | None:
    """Return those of all rows where they lie in memory: of a large data set on the CPU.

    None for any other, of which each part is to have its own rows copied.
    """
    if device.type != "cpu":
        return None
    if n_rows * features(slice(0, 1)).nbytes < SHARED_FROM:
        return None
    return put_channels_first(features(slice(None)))


def copy_features(features: Features, rows: Ints, device: torch.device) -> Tensor:
    """Return those of some rows on the device, copied a piece at a time."""
    one = put_channels_first(features(rows[:1]))
    copied = torch.empty((len(rows), *one.shape[1:]), dtype=one.dtype, device=device)
    at_once = max(1, _PIECE // max(1, one.nbytes))
    for start in range(0, len(rows), at_once):
        piece = slice(start, start + at_once)
        copied[piece] = put_channels_first(features(rows[piece]))
    return copied


def hold_features(x: np.ndarray, device: torch.device) -> Tensor:
    """Return all of x on the device: x itself where it is large and there already."""
    arranged = put_channels_first(x)
    if device.type == "cpu" and arranged.nbytes >= SHARED_FROM:
        return arranged
    return torch.empty(arranged.shape, dtype=arranged.dtype, device=device).copy_(arranged)


def put_channels_first(x: np.ndarray) -> Tensor:
    """Return images as [n, C, H, W], tables as [n, D]; uint8 or float32. A view where it can be."""
    if x.dtype != np.uint8:
        x = x.astype(np.float32, copy=False)
    x = np.ascontiguousarray(x)
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4:
        x = x.transpose(0, 3, 1, 2)
    with warnings.catch_warnings():
        # nothing is written into it, so it may well be an array that cannot be written
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(x)
