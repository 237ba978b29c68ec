"""Which checkpoints stay: `--keep all|every:N|last`. Needs no torch."""

import re
from collections.abc import Sequence

from niidpart.errors import UsageError

from .names import Place, chain_of

_EVERY = re.compile(r"every:([1-9][0-9]{0,8})")


def require_keep(keep: str) -> str:
    """Return what --keep was given; UsageError where it is none of its forms."""
    if keep not in ("all", "last") and not _EVERY.fullmatch(keep):
        raise UsageError(
            f"keep is {keep!r}; it must be all, last, or every:N with a whole number N, "
            "such as every:10"
        )
    return keep


def must_keep(round: int, keep: str) -> bool:
    """Return whether the checkpoint of a round is asked for, and so has to be written."""
    match = _EVERY.fullmatch(keep)
    return round % int(match[1]) == 0 if match else keep == "all"


def choose_kept(places: Sequence[Place], keep: str) -> list[Place]:
    """Return the checkpoints that stay, oldest first, of those there are.

    In every case the newest, and the newest that shares no file with it: whichever single file is
    damaged, one whole checkpoint is left. With each, all that its state is made of.
    """
    if keep == "all" or not places:
        return list(places)
    wanted = set(_list_fallbacks(places))
    wanted.update(place.round for place in places if must_keep(place.round, keep))
    kept: set[Place] = set()
    chain: list[Place] = []  # a base and the changed rows behind it, so far
    for place in places:
        if place.is_base:
            chain = []
        chain.append(place)
        if place.round in wanted:
            kept.update(chain)
    return sorted(kept)


def _list_fallbacks(places: Sequence[Place]) -> list[int]:
    """Return the round of the newest checkpoint, and of the newest that shares no file with it."""
    newest = places[-1].round
    chain = chain_of(places, newest)
    if not chain:
        return [place.round for place in places]  # its base is gone: what is left is of no chain
    before = [place.round for place in places if place.round < chain[0].round]
    return [newest, *before[-1:]]
