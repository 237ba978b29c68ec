"""Derives a split again from its recipe and data (rules 60 to 64 of docs/format.md)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..arithmetic.words import Array
from ..data import SOURCES, Data
from ..data.of_split import compare_sources, open_data, read_labels_of, source_faults
from ..errors import UsageError
from ..making.completion import complete_recipe
from ..making.derivation import deals_by_sizes, derive
from ..making.handed_over import check_stored_labels, why_not_handed_over
from ..splitfile.faults import Fault
from ..splitfile.rules import StoredSkew
from ..splits.digests import digest_array
from ..splits.part_making import count_classes
from ..splits.recipe import IMPORTED, Source
from ..splits.split import FederatedSplit
from ..strategies import STRATEGIES
from ..streaming.derivation import derive_on_disk
from ..streaming.making import require_room
from .skew_rule import check_skew


class StatedSplit(NamedTuple):
    """The split that a file holds, the skew that it states, and where its data is."""

    split: FederatedSplit
    skew: StoredSkew | None
    data: Data | None
    data_root: str | Path | None
    trusted: Sequence[str] = ()  # fingerprints of files whose code may be run
    folder: Path | None = None  # a scratch folder where the split is a large one


class FoundLabels(NamedTuple):
    """The labels that were found for a split, and how it is derived from them again.

    why_not: why its seed alone does not give it, "" where it does.
    """

    source: Source
    labels: Array
    derive: Callable[[Mapping[str, Array] | None], FederatedSplit]  # of stored draws, or None
    why_not: str = ""


class Rederived(NamedTuple):
    """The broken rules that were found. derived: False where it was not derived, for `why_not`."""

    faults: list[Fault]
    derived: bool
    why_not: str = ""


def answer_rederived(*stated: Any) -> list[Any]:
    """Return what `rederive` gives as JSON, for the parent of a child process."""
    found = rederive(StatedSplit(*stated))
    faults = [[fault.rule, fault.message] for fault in found.faults]
    return [faults, found.derived, found.why_not]


def rederive(stated: StatedSplit) -> Rederived:
    """Derive a split again, where its recipe and its data allow it, and compare."""
    split = stated.split
    faults = check_skew(split, stated.skew)
    if split.recipe.strategy == IMPORTED:
        return _check_imported(stated, faults)
    foreign = _find_foreign(split, stated.trusted)
    if foreign:
        reason = f"{foreign!r} is not niidpart's own, and code that a file names is not run"
        if stated.trusted:
            reason += "; none of the trusted files is that one, with that text"
        return Rederived(faults, False, reason)
    try:
        found = _find_labels(stated)
    except (OSError, ValueError) as error:
        return Rederived(faults, False, str(error))
    if found.why_not:
        why_not = f"{found.why_not}; its stored draws were followed"
        return Rederived(faults + _compare_replayed(split, found), False, why_not)
    return Rederived(faults + _compare(split, found), True)


def _find_labels(stated: StatedSplit) -> FoundLabels:
    """Return the labels of the data set, in memory or on the disk."""
    recipe, folder = stated.split.recipe, stated.folder
    if folder is None or not _can_be_streamed(stated):
        return _find_in_memory(stated)
    require_room(folder, recipe, stated.split.source.n)
    column = read_labels_of(stated.split, stated.data_root, folder)

    def derive_again(given: Mapping[str, Array] | None) -> FederatedSplit:
        own = folder / ("derived" if given is None else "replayed")
        own.mkdir()
        return derive_on_disk(column, recipe, own, given=given)

    return FoundLabels(column.source, column.ids, derive_again)


def _find_in_memory(stated: StatedSplit) -> FoundLabels:
    data = _find_data(stated)

    def derive_again(given: Mapping[str, Array] | None) -> FederatedSplit:
        return derive(data, stated.split.recipe, given=given)

    why_not = why_not_handed_over(stated.split.recipe, data)
    return FoundLabels(data.source, data.labels, derive_again, why_not)


def _can_be_streamed(stated: StatedSplit) -> bool:
    source, recipe = stated.split.source.name, stated.split.recipe
    if stated.data is not None or source not in SOURCES.names():
        return False
    has_stream = SOURCES.record(source).stream is not None
    return has_stream and deals_by_sizes(STRATEGIES.find(recipe.strategy))


def _find_data(stated: StatedSplit) -> Data:
    if stated.data is not None:
        return stated.data
    return open_data(stated.split, stated.data_root)


def _check_imported(stated: StatedSplit, faults: list[Fault]) -> Rederived:
    """Check rules 60 to 62 of a split that another program made, where its data is found."""
    split = stated.split
    why_not = "its rows were imported, and nothing says how they were drawn"
    try:
        data = _find_data(stated)
    except (OSError, ValueError) as error:
        return Rederived(faults, False, f"{why_not}; nor was its data looked at: {error}")
    faults += source_faults(split, data) or _check_counts(split, data.labels)
    return Rederived(faults, False, f"{why_not}; its data and its counts are right")


def _find_foreign(split: FederatedSplit, trusted: Sequence[str]) -> str:
    """Return the name of code that deriving would run, and neither is niidpart's nor trusted."""
    name = split.recipe.strategy  # a transform that is none of niidpart's is refused by rule 41
    _, _, fingerprint = name.partition("#")
    return name if name not in STRATEGIES.names() and fingerprint not in trusted else ""


def _compare(split: FederatedSplit, found: FoundLabels) -> list[Fault]:
    """Return the faults of rules 60 to 64."""
    faults = compare_sources(split.source, found.source)
    if faults:
        return faults
    faults = _check_counts(split, found.labels)
    try:
        if complete_recipe(split.recipe) != split.recipe:
            raise UsageError("it does not say all options")
        derived = found.derive(None)
    except (ValueError, ArithmeticError) as error:
        return [*faults, Fault(64, f"the recipe cannot be carried out: {error}")]
    derived = replace(derived, source=split.source)  # the same data, however it was come by
    for name in sorted(_find_other_draws(derived, split)):
        faults.append(Fault(63, f"/draws/{name} is not what the seed gives"))
    if derived.digest != split.digest:
        if _replay(split, found) == split.digest:
            how = "the stored draws give it, the seed does not"
        else:
            how = "neither the seed nor the stored draws give it"
        right, stored = derived.digest[:12], split.digest[:12]
        message = f"the recipe gives the split {right}..., the file holds {stored}...: {how}"
        faults.append(Fault(64, message))
    return faults


def _compare_replayed(split: FederatedSplit, found: FoundLabels) -> list[Fault]:
    """Return the faults of rules 60 to 64 where something was handed over that is not at hand."""
    faults = compare_sources(split.source, found.source)
    if faults:
        return faults
    faults = _check_counts(split, found.labels)
    reason = check_stored_labels(split.recipe, split.draws, found.labels)
    if reason:
        faults.append(Fault(63, reason))
    if _replay(split, found) != split.digest:
        faults.append(Fault(64, "the stored draws do not give the split"))
    return faults


def _check_counts(split: FederatedSplit, labels: Array) -> list[Fault]:
    """Return the faults of rule 62. labels: [N] class ids."""
    faults = []
    n_classes = len(split.source.class_names)
    for name, part in split.parts.items():
        right = count_classes(part.indptr, part.indices, labels, n_classes)
        if (right != part.counts).any():
            faults.append(Fault(62, f"/{name}/counts differs from the labels of the examples"))
    return faults


def _find_other_draws(a: FederatedSplit, b: FederatedSplit) -> set[str]:
    """Return the names of draws that one split lacks, or that differ."""
    return {name for name, _ in _digest_draws(a) ^ _digest_draws(b)}


def _digest_draws(split: FederatedSplit) -> set[tuple[str, str]]:
    """Return (name, digest) of each draw. Empty draws are not stored, so they count for none."""
    stored = {name: draw for name, draw in split.draws.items() if draw.size}
    return {(name, digest_array(draw)) for name, draw in stored.items()}


def _replay(split: FederatedSplit, found: FoundLabels) -> str:
    """Return the digest of the split that the stored draws give, "" where they make no sense."""
    try:
        with np.errstate(all="ignore"):
            replayed = found.derive(split.draws)
    except (ValueError, IndexError, TypeError, ArithmeticError):
        return ""  # stored draws are untrusted numbers
    return replace(replayed, source=split.source).digest
