"""`verify`: re-derives a split from its recipe and its data, and says what differs."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from . import h5
from .check import check
from .data import SOURCES, Data, load_with
from .guard import Fault
from .make import STRATEGIES, TRANSFORMS, completed, derive
from .registry import Registry
from .split import FederatedSplit, array_digest


@dataclass(frozen=True)
class Verdict:
    """faults: broken rules, [] if none was found. derived: whether the split was derived again from its data. why_not: the reason if not."""

    faults: list[Fault]
    derived: bool
    why_not: str = ""


def verify(path: str | Path, *, data: Data | None = None, data_root: str | Path | None = None) -> Verdict:
    """Every rule of docs/format.md on a file, then the split made anew from recipe and data and compared with it.

    data, data_root: where the labels are; without them, where the file's hint says. Code that a file names (a strategy of a user's own)
    is never run.
    """
    faults = check(path)
    if faults:
        return Verdict(faults, derived=False, why_not="the file itself is at fault")
    split = h5.read(path)
    if own := [name for name, folder in _names(split) if name not in folder.names()]:
        return Verdict([], derived=False, why_not=f"{own[0]!r} is not niidpart's own, and code that a file names is not run")
    if data is None:
        try:
            data = open_data(split, data_root)
        except (OSError, ValueError) as error:
            return Verdict([], derived=False, why_not=str(error))
    return Verdict(_compare(split, data), derived=True)


def _names(split: FederatedSplit) -> list[tuple[str, Registry]]:
    """What deriving the split would run, each with the folder that it has to be in."""
    return [(split.recipe.strategy, STRATEGIES), *((t.name, TRANSFORMS) for t in split.recipe.transforms)]


def open_data(split: FederatedSplit, data_root: str | Path | None = None) -> Data:
    """The data set that a split is of, from `data_root` or from where its maker had it. ValueError if it is another one."""
    if split.source.name == "array":
        raise ValueError("the split was made from an array of labels and does not say where the data is; hand it over (data=)")
    if split.source.name not in SOURCES.names():
        raise ValueError(f"the split is of the data set {split.source.name!r}, which is not niidpart's own; hand it over (data=)")
    return load_with(split.source.name, data_root or split.root or None, split.source.params)


def matches(split: FederatedSplit, data: Data) -> list[Fault]:
    """Rules 60 and 61: is this the data that the split was made for?"""
    made_for, got = split.source, data.source
    if made_for.n != got.n or made_for.labels_sha256 != got.labels_sha256 or made_for.class_names != got.class_names:
        made = f"{made_for.n} labels with sha256 {made_for.labels_sha256[:12]}..."
        return [Fault(60, f"the split was made for {made}, these are {got.n} with {got.labels_sha256[:12]}...")]
    if made_for.content_sha256 and got.content_sha256 and made_for.content_sha256 != got.content_sha256:
        differ = f"sha256 {got.content_sha256[:12]}..., not {made_for.content_sha256[:12]}..."
        return [Fault(61, f"the labels are those the split was made for, the features or the test set are not ({differ})")]
    return []


def _compare(split: FederatedSplit, data: Data) -> list[Fault]:
    """Rules 60 to 64."""
    faults = matches(split, data)
    if faults:
        return faults
    K = len(split.source.class_names)
    for name, part in split.parts.items():
        cells = np.repeat(np.arange(split.n_parties) * K, part.sizes) + data.labels[part.indices]
        if (np.bincount(cells, minlength=part.counts.size) != part.counts.reshape(-1)).any():
            faults.append(Fault(62, f"/{name}/counts differs from the labels of the examples"))
    try:
        if completed(split.recipe) != split.recipe:
            raise ValueError("it does not say all options")
        anew = replace(derive(data, split.recipe), source=split.source)  # the same data, however it was come by
    except ValueError as error:
        return [*faults, Fault(64, f"the recipe cannot be carried out: {error}")]
    faults += [Fault(63, f"/draws/{name} is not what the seed gives") for name in sorted(_different(anew, split))]
    if anew.digest != split.digest:
        how = (
            "the stored draws give it, the seed does not"
            if _replayed(split, data) == split.digest
            else "neither the seed nor the stored draws give it"
        )
        faults.append(Fault(64, f"the recipe gives the split {anew.digest[:12]}..., the file holds {split.digest[:12]}...: {how}"))
    return faults


def _different(anew: FederatedSplit, split: FederatedSplit) -> set[str]:
    """Names of draws that are in one and not in the other, or differ. Empty draws are not stored."""
    mine, theirs = ({(k, array_digest(v)) for k, v in s.draws.items() if v.size} for s in (anew, split))
    return {name for name, _ in mine ^ theirs}


def _replayed(split: FederatedSplit, data: Data) -> str:
    """The digest of the split that the stored draws give, "" where they make no sense."""
    try:
        with np.errstate(all="ignore"):
            return replace(derive(data, split.recipe, given=split.draws), source=split.source).digest
    except (ValueError, IndexError, TypeError, ArithmeticError):  # stored draws are a stranger's numbers
        return ""
