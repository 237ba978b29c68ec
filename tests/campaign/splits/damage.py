"""From the number of a mutant to its bytes."""

import io
import random
from collections.abc import Callable
from typing import NamedTuple

import h5py
import numpy as np
from corpus import registry

from .. import chance
from . import objects, raw, splices, texts
from .bases import Base

# damage -> its share
BYTES = {chance.flip_bits: 10, chance.set_bytes: 8, chance.break_block: 12}
FITTED = {
    raw.lie_in_structure: 10,
    raw.swap_structures: 2,
    raw.redirect_address: 3,
    raw.lie_in_block: 4,
    raw.end_otherwise: 2,
    raw.lie_in_chunk: 6,
    raw.lie_in_values: 8,
}
CONTENT = {
    objects.drop_object: 2,
    objects.rename_object: 3,
    objects.copy_object: 3,
    objects.add_object: 3,
    objects.store_otherwise: 4,
    objects.change_values: 6,
    objects.deal_otherwise: 5,
    objects.change_draws: 3,
    texts.change_manifest: 6,
    texts.break_text: 3,
    texts.change_side_text: 1,
}
SPLICED_BYTES = {splices.splice_bytes: 3, splices.splice_chunk: 2}
SPLICED_CONTENT = {splices.splice_objects: 4, splices.splice_manifest: 3}
SHARES = BYTES | FITTED | CONTENT | SPLICED_BYTES | SPLICED_CONTENT
TWICE = 0.2  # of what is done to the content, more than one thing is done
REDIGESTED = 0.6  # and the digests are made anew

UNBUILT = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
    OSError,
    IndexError,
    RuntimeError,
)


class Mutant(NamedTuple):
    """The bytes, the good file that they were, and how they were damaged.

    is_fitted: checksums or digests were made to fit, or come from another good file.
    """

    kind: str
    base: Base
    whole: bytes
    is_fitted: bool


def make_mutant(number: int, bases: list[Base]) -> Mutant | None:
    """None where the damage changed nothing."""
    rng = random.Random(number)
    # A file of many data sets takes as many times as long: each shape has its share of the time.
    base, other = rng.choices(bases, weights=[1 / len(base.arrays) for base in bases], k=2)
    way = rng.choices(list(SHARES), weights=list(SHARES.values()))[0]
    if way in BYTES:
        whole = way(rng, base.whole)
    elif way in FITTED:
        whole = way(rng, base)
    elif way in SPLICED_BYTES:
        whole = way(rng, base, other)
    else:
        whole = _change_content(rng, base, other, way)
    if whole is None or whole == base.whole:
        return None
    return Mutant(way.__name__, base, whole, way not in BYTES)


def _change_content(rng: random.Random, base: Base, other: Base, way: Callable) -> bytes | None:
    image = io.BytesIO(base.whole)
    try:
        with h5py.File(image, "r+", libver=registry.NEW) as file:
            while True:
                if way in SPLICED_CONTENT:
                    way(rng, file, other)
                else:
                    way(rng, file)
                if rng.random() > TWICE:
                    break
                further = CONTENT | SPLICED_CONTENT
                way = rng.choices(list(further), weights=list(further.values()))[0]
            if rng.random() < REDIGESTED:
                _redigest(file)
    except UNBUILT:  # the library, or the second damage, cannot make this of what is left
        return None
    return image.getvalue()


def _redigest(file: h5py.File) -> None:
    """Make the digests anew, where what is left has any."""
    try:
        with np.errstate(all="ignore"):
            registry.put_manifest(file, registry.digested(file))
    except UNBUILT:
        return
