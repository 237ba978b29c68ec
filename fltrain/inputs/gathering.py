"""A split and its data set as tensors on the device, copied as rarely as can be."""

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
from niidpart.features.relabelling import list_label_steps, relabel_parties
from niidpart.features.transforming import list_feature_steps
from niidpart.splits.part import Part
from niidpart.splits.view import RowIds

from ..settings import Settings
from .device_features import copy_features, hold_features, put_channels_first, share_features
from .examples import PartyExamples, Preparation
from .federated import Federated
from .noises import Noise, make_noises
from .normalisation import make_normalisation
from .party_views import PartyView

_DEFAULT = Settings()


class SharedInputs(NamedTuple):
    """What all runs on a split share, whoever is held out.

    all_rows: the features of all rows, where parties read those; None where they have copies.
    global_test: without what is done to a batch. shape: of one example. has_tests: whether test
    parts are read.
    """

    split: niidpart.FederatedSplit
    labels: Ints
    features: Features
    all_rows: Tensor | None
    device: torch.device
    global_test: PartyExamples | None
    shape: tuple[int, ...]
    noises: tuple[Noise | PartyView, ...]
    n_classes: int
    has_tests: bool


def load_federated(
    split: niidpart.FederatedSplit,
    data: Data,
    device: torch.device,
    settings: Settings = _DEFAULT,
) -> Federated:
    """Return what the parties of a split hold, where nobody is held out."""
    return gather_federated(open_inputs(split, data, device, settings), settings)


def open_inputs(
    split: niidpart.FederatedSplit, data: Data, device: torch.device, settings: Settings
) -> SharedInputs:
    """Return what all runs on a split share, on the device.

    UsageError where there is nothing to train on, or to measure what is asked for.
    """
    features = _require_features(data)
    _require_test_set(split, data, settings)
    shape = tuple(put_channels_first(features(slice(0, 1))).shape[1:])
    return SharedInputs(
        split=split,
        labels=data.labels,
        features=features,
        all_rows=share_features(features, len(data.labels), device) if _can_share(split) else None,
        device=device,
        global_test=None if settings.validation_only else _gather_global_test(data, device),
        shape=shape,
        noises=make_noises(split, shape, device, fixed=settings.noisy_test),
        n_classes=len(data.class_names),
        has_tests=not settings.validation_only,
    )


def gather_federated(
    shared: SharedInputs, settings: Settings, held_out: Sequence[int] = ()
) -> Federated:
    """Return what parties hold, in their order, for all runs that hold out the same.

    settings: what is done to each batch, but for what a run does with draws of its own
    (`Federated.prepare_for`). held_out: the parties that never train, ascending. A data set that is
    read where it lies stays there.
    """
    everybody = range(shared.split.n_parties)
    trained = sorted(set(everybody).difference(held_out))
    stored = [_gather_parties(shared, trained)]
    if held_out:
        stored.append(_gather_parties(shared, held_out))
    # What is fitted to training rows is fitted to those of parties that train.
    train = stored[0].train
    normalise = make_normalisation(settings.normalise, train.x, train.places)
    fresh = tuple(noise for noise in shared.noises if noise.is_fresh)
    of_party = Preparation(noise=fresh, normalise=normalise)
    prepared = []
    for parties in stored:
        parts = (parties.train, parties.val, parties.test)
        train, val, test = (replace(part, prepare=of_party) for part in parts)
        prepared.append(replace(parties, train=train, val=val, test=test))
    federated = prepared[0]
    plain = shared.global_test
    if plain is not None:
        of_server = Preparation(normalise=normalise)
        federated = replace(federated, global_test=replace(plain, prepare=of_server))
    if plain is not None and settings.noisy_test:
        # Its rows are numbered after those of the data: no noise of training again.
        rows = plain.rows + len(shared.labels)
        shown = Preparation(noise=shared.noises, normalise=normalise)
        federated = replace(federated, noisy_test=replace(plain, rows=rows, prepare=shown))
    if not held_out:
        return federated
    n_of_split = len(everybody)
    new = replace(prepared[1], numbers=tuple(held_out), n_of_split=n_of_split)
    return replace(federated, numbers=tuple(trained), n_of_split=n_of_split, new_parties=new)


def _require_features(data: Data) -> Features:
    if data.features is None:
        raise UsageError("the data has labels but no features; there is nothing to train on")
    return data.features


def _require_test_set(split: niidpart.FederatedSplit, data: Data, settings: Settings) -> None:
    """Raise UsageError where nothing can be evaluated, or not as the settings ask for."""
    if settings.validation_only:
        _require_validation(split, settings)
        return
    is_global = data.test_labels is not None and data.test_features is not None
    if split.test.n == 0 and not is_global:
        raise UsageError(
            "there is no test set anywhere; make the split with a part for it: "
            "niidpart make ... --test 0.2"
        )
    if settings.noisy_test and not is_global:
        raise UsageError(
            "noisy-test needs a test set of the data set's own, and there is none; "
            "the parties' own test parts are transformed anyway"
        )
    if settings.noisy_test and not list_feature_steps(split.recipe):
        raise UsageError(
            "noisy-test needs a split with a transform of features, and this one has none; "
            "make it with --transform noise, or leave --noisy-test away"
        )


def _require_validation(split: niidpart.FederatedSplit, settings: Settings) -> None:
    """Raise UsageError where a run that reads no test set has nothing to be measured on."""
    if split.val.n == 0:
        raise UsageError(
            "validation-only: the parties have no validation part; make the split with one: "
            "niidpart make ... --val 0.2"
        )
    if settings.noisy_test:
        raise UsageError("noisy-test is of the test set, and validation-only reads none; give one")


def _can_share(split: niidpart.FederatedSplit) -> bool:
    """Return whether parties can read the rows of the data set itself, most of which they hold."""
    n_dealt = sum(len(part.indices) for part in split.parts.values())
    has_own_views = list_feature_steps(split.recipe) or list_label_steps(split.recipe)
    return not has_own_views and 2 * n_dealt >= split.source.n


def _gather_parties(shared: SharedInputs, parties: Sequence[int]) -> Federated:
    """Return what some parties hold, as it is stored."""
    split = shared.split
    train = _relabel(
        shared, _gather_rows(shared, _list_rows(split.train, parties), parties), parties
    )
    val = _relabel(shared, _gather_rows(shared, _list_rows(split.val, parties), parties), parties)
    tested = _list_rows(split.test, parties)
    if not shared.has_tests:
        tested = [rows[:0] for rows in tested]
    test = _gather_rows(shared, tested, parties)
    counts = split.train.counts[list(parties)].astype(np.int64)
    if list_label_steps(split.recipe):  # an algorithm sees the labels that parties have
        counts = _count_classes(train, len(parties), shared.n_classes)
    return Federated(
        train=train,
        val=val,
        test=test,
        global_test=None,
        counts=torch.from_numpy(counts),
        shape=shared.shape,
        n_classes=shared.n_classes,
    )


def _relabel(
    shared: SharedInputs, examples: PartyExamples, parties: Sequence[int]
) -> PartyExamples:
    """Return examples with the labels that their parties see; a test part keeps the true ones."""
    if not list_label_steps(shared.split.recipe):
        return examples
    rows, y = examples.rows.cpu().numpy(), examples.y.cpu().numpy()
    seen = relabel_parties(shared.split, y, rows, list(parties), examples.indptr)
    return replace(examples, y=torch.from_numpy(seen).to(shared.device))


def _count_classes(train: PartyExamples, n_parties: int, n_classes: int) -> Ints:
    """Return [P, K] training examples of each class, by the labels that the parties see."""
    owner = np.repeat(np.arange(n_parties), np.diff(train.indptr))
    cells = owner * n_classes + train.y.cpu().numpy()
    return np.bincount(cells, minlength=n_parties * n_classes).reshape(n_parties, n_classes)


def _list_rows(part: Part, parties: Sequence[int]) -> list[RowIds]:
    """Return the rows of each of some parties in a part."""
    return [part.indices[part.indptr[p] : part.indptr[p + 1]] for p in parties]


def _gather_rows(
    shared: SharedInputs, held: Sequence[RowIds], parties: Sequence[int]
) -> PartyExamples:
    """Return the examples in the rows of each party, with transforms that no epoch changes."""
    on_host = np.concatenate(held).astype(np.int64)
    indptr = np.cumsum([0, *map(len, held)])
    rows = torch.from_numpy(on_host).to(shared.device)
    if list_feature_steps(shared.split.recipe) and len(rows):
        x = _transform_rows(shared, on_host, parties, indptr)
    elif shared.all_rows is None:
        x = copy_features(shared.features, on_host, shared.device)
    else:
        x = shared.all_rows
    party = np.repeat(np.array(parties, np.int64), np.diff(indptr))
    return PartyExamples(
        x=x,
        y=torch.from_numpy(shared.labels[on_host]).to(shared.device),
        indptr=indptr.tolist(),
        rows=rows,
        party=torch.from_numpy(party).to(shared.device),
        places=None if shared.all_rows is None else rows,
    )


def _transform_rows(
    shared: SharedInputs, rows: Ints, parties: Sequence[int], indptr: Ints
) -> Tensor:
    """Return the features of rows as their parties see them."""
    x = shared.features(rows)
    seen: Tensor | None = None
    for number, party in enumerate(parties):
        mine = slice(indptr[number], indptr[number + 1])
        its = put_channels_first(niidpart.transform(shared.split, x[mine], party, rows[mine]))
        if seen is None:
            seen = torch.empty((len(rows), *its.shape[1:]), dtype=its.dtype, device=shared.device)
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
