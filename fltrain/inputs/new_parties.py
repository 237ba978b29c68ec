"""Parties that are held out: which they are, and their examples apart from those that train."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

import niidpart
from niidpart.errors import UsageError

from ..draws import key, order
from ..settings import Settings
from .examples import PartyExamples
from .federated import Federated
from .normalisation import make_normalisation


class Parted(NamedTuple):
    """The parties that train, and those that are held out; None where none is."""

    trained: Federated
    new: Federated | None


def draw_new_parties(split: niidpart.FederatedSplit, settings: Settings) -> tuple[int, ...]:
    """Return the numbers of the parties that are held out, ascending; () where none is asked for.

    They are the first that have a test part, in an order of all parties drawn by the seed: so fewer
    of them are some of more. UsageError where the split does not have as many, or nobody is left
    to train.
    """
    if settings.new_parties is None:
        return ()
    n_parties = split.n_parties
    wanted = _count_wanted(n_parties, settings.new_parties)
    if wanted >= n_parties:
        raise UsageError(
            f"new-parties is {settings.new_parties:g}, and the split has {n_parties} parties: "
            f"none would be left to train; give at most {n_parties - 1}"
        )
    in_order = order(key(settings.seed, "new-parties"), 0, n_parties, torch.device("cpu"))
    measured = [party for party in in_order.tolist() if split.test.sizes[party]]
    if wanted > len(measured):
        there = f"{len(measured)} of {n_parties} parties have" if measured else "no party has"
        fewer = ", or ask for fewer" if measured else ""
        raise UsageError(
            f"new-parties asks for {wanted}, and {there} a test part to measure them on; make the "
            f"split with niidpart make ... --test 0.2{fewer}"
        )
    drawn = sorted(measured[:wanted])
    if not any(split.train.sizes[party] for party in range(n_parties) if party not in drawn):
        raise UsageError(
            f"new-parties holds out {', '.join(map(str, drawn))}, and no other party has a "
            "training example; ask for fewer, or take another --seed"
        )
    return tuple(drawn)


def _count_wanted(n_parties: int, asked: float) -> int:
    """Return how many parties a number, or a share of all, is: the floor, at least one."""
    if asked >= 1:
        return int(asked)
    # 100 x 0.29 is 28.999999999999996 in floats
    return max(1, math.floor(n_parties * asked + 1e-9))


def part_off(data: Federated, new: Sequence[int], normalise: str) -> Parted:
    """Return what the other parties hold, and what the parties `new` hold.

    normalise: the setting; what is fitted to training rows is fitted to those of the others. What
    lies in the order of the parties is copied; a data set that is read where it lies stays there.
    """
    if not new:
        return Parted(data, None)
    others = [party for party in range(data.n_parties) if party not in new]
    trained = _select(data, others)
    if normalise == "data":
        train = trained.train
        trained = trained.normalise(make_normalisation(normalise, train.x, train.places))
    of_new = replace(_select(data, new), global_test=None, noisy_test=None)
    return Parted(trained, of_new.normalise(trained.train.prepare.normalise))


def _select(data: Federated, parties: Sequence[int]) -> Federated:
    """Return what some parties hold. They know their numbers among all."""
    return replace(
        data,
        train=_select_examples(data.train, parties),
        val=_select_examples(data.val, parties),
        test=_select_examples(data.test, parties),
        counts=data.counts[list(parties)],
        numbers=tuple(parties),
        n_of_split=data.n_parties,
    )


def _select_examples(part: PartyExamples, parties: Sequence[int]) -> PartyExamples:
    spans = [slice(part.indptr[party], part.indptr[party + 1]) for party in parties]

    def gather(values: Tensor) -> Tensor:
        return torch.cat([values[span] for span in spans])

    sizes = [part.size(party) for party in parties]
    return replace(
        part,
        x=gather(part.x) if part.places is None else part.x,
        places=None if part.places is None else gather(part.places),
        y=gather(part.y),
        indptr=[0, *accumulate(sizes)],
        rows=gather(part.rows),
        party=gather(part.party),
    )
