"""`examine`: every rule of docs/format.md on what a split file holds.

The rules in order: 1 to 4 and 8 to 19 on structure in `guard.py` and `chunks.py`, 5 to 7 in
`sandbox.py`, 20 to 27 in `manifest.py`, those on types and shapes in `layout.py`, 31 to 35 in
`part_rules.py`, 41 and 43 in `column_rules.py`, the rest here; 60 to 65 in `niidpart/checking`.
"""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..arithmetic.words import Array
from ..splits.digests import digest_array
from ..splits.part import PARTS, make_empty_part
from ..splits.recipe import JSON
from ..splits.split import FederatedSplit
from .column_rules import check_transforms, list_column_checks
from .faults import Fault
from .json_text import parse_json, read_json
from .layout import (
    build_digest_table,
    check_layout,
    list_digest_names,
    list_parts,
    select_under,
)
from .limits import MAX_HINT
from .manifest import Manifest, parse_manifest
from .part_rules import check_shared_rows, read_part
from .stored import Content, Look, StoredArray, read_values


class StoredSkew(NamedTuple):
    """The skew that a file states: map_beta [P], and the table of measures."""

    map_beta: Array
    table: JSON


class Examined(NamedTuple):
    """The outcome of `examine`.

    split: None where there are faults. manifest: None where that is at fault. skew: None where the
    file states none.
    """

    faults: list[Fault]
    split: FederatedSplit | None = None
    manifest: Manifest | None = None
    skew: StoredSkew | None = None


def examine(content: Content, folder: Path | None = None) -> Examined:
    """Check every rule on what a file holds, and build the split in it.

    Later rules are looked at only where the earlier ones hold, since they build on them. folder: a
    scratch folder for the rows of parts, None for memory.
    """
    manifest, faults = examine_outline(content)
    if manifest is None or faults:
        return Examined(faults, None, manifest)
    recipe, source, arrays = manifest.recipe, manifest.source, content.arrays
    empty = make_empty_part(recipe.n_parties, len(source.class_names))
    parts = dict.fromkeys(PARTS, empty)
    for name in list_parts(arrays):
        parts[name] = read_part(name, arrays, source.n, faults, folder) or empty
    if faults:
        return Examined(faults, None, manifest)
    faults += check_shared_rows(parts, source.n, "overlap" in manifest.requires)
    columns = _read_under("parties/", arrays, list_column_checks(recipe))
    split = FederatedSplit(
        recipe=recipe,
        source=source,
        **parts,
        draws=_read_under("draws/", arrays, {}),
        columns=columns,
        root=read_hint(content),
    )
    faults += _check_digests(split, manifest.digests)
    skew = _read_skew(arrays, manifest, faults)
    return Examined(faults, None if faults else split, manifest, skew)


def examine_outline(content: Content) -> tuple[Manifest | None, list[Fault]]:
    """Return the manifest, and the rules that it and the shapes of the arrays break.

    That is all that can be known before the values are read.
    """
    value = read_json("manifest", content.arrays.get("manifest"))
    manifest, faults = parse_manifest(value)
    read_hint(content)  # refuses one that is no JSON
    if manifest is None:
        return None, faults
    overlap = "overlap" in manifest.requires
    faults = check_layout(content.arrays, manifest.recipe, manifest.source, overlap)
    columns = select_under("parties/", content.arrays)
    return manifest, faults + check_transforms(manifest.recipe, columns)


def read_hint(content: Content) -> str:
    """Return where the maker had the data.

    "" in a file that is not the reader's own: its maker shall not choose what is opened here.
    """
    hint = content.arrays.get("hint")
    if hint is None:
        return ""
    root = read_json("hint", hint, MAX_HINT).get("root", "")
    if not content.own or not isinstance(root, str) or "\0" in root:
        return ""
    return root


def _read_under(
    prefix: str, arrays: Mapping[str, StoredArray], checks: Mapping[str, Look]
) -> dict[str, Array]:
    stored = select_under(prefix, arrays)
    return {name: read_values(array, checks.get(name)) for name, array in stored.items()}


def _check_digests(split: FederatedSplit, stated: Mapping[str, str]) -> list[Fault]:
    """Return the faults of rules 50 and 51."""
    faults = []
    right = build_digest_table(split)
    for name in sorted(right.keys() - {"split"}):
        if stated.get(name) != right[name]:
            faults.append(Fault(50, f"the digest of {name} is not the one in the manifest"))
    faults += _check_absent(set(stated) - set(right))
    if stated["split"] != right["split"]:
        mine, theirs = right["split"][:12], stated["split"][:12]
        message = f"the digest of the split is {mine}..., the manifest says {theirs}..."
        faults.append(Fault(51, message))
    return faults


def check_digest_names(content: Content, manifest: Manifest) -> list[Fault]:
    """Return the faults of rule 50 that show without reading a value: what was added or is gone.

    A part that was renamed would be an empty one.
    """
    needed, stated = list_digest_names(content.arrays), set(manifest.digests)
    faults = _check_absent(stated - needed)
    for name in sorted(needed - stated):
        faults.append(Fault(50, f"the manifest has no digest of {name}, which the file holds"))
    return faults


def _check_absent(names: Set[str]) -> list[Fault]:
    if not names:
        return []
    shown = ", ".join(map(ascii, sorted(names)[:5]))
    return [Fault(50, f"the manifest has digests of {shown}, which the file lacks")]


def _read_skew(
    arrays: Mapping[str, StoredArray], manifest: Manifest, faults: list[Fault]
) -> StoredSkew | None:
    """Read the skew that the file states, and note the faults of rules 53 and 54."""
    if "skew/table" not in arrays:
        if manifest.skew:
            faults.append(Fault(54, "the manifest has digests of /skew, which the file lacks"))
        return None
    beta = read_values(arrays["skew/map_beta"])
    raw = read_values(arrays["skew/table"])
    if not np.isfinite(beta).all():
        faults.append(Fault(53, "/skew/map_beta is not finite"))
    table = parse_json("skew/table", raw.tobytes())
    if not _is_table(table):
        message = "/skew/table does not say which measures it has, each with its name and version"
        faults.append(Fault(53, message))
    if manifest.skew != {"map_beta": digest_array(beta), "table": digest_array(raw)}:
        faults.append(Fault(54, "the digests of /skew are not those in the manifest"))
    return StoredSkew(beta, table)


def _is_table(table: JSON) -> bool:
    beta, measures = table.get("map_beta"), table.get("measures")
    if not isinstance(beta, dict) or type(beta.get("version")) is not int:
        return False
    return isinstance(measures, list) and all(map(_is_measure, measures))


def _is_measure(measure: object) -> bool:
    if not isinstance(measure, dict):
        return False
    kinds = [type(measure.get(key)) for key in ("name", "form", "version")]
    return kinds == [str, str, int]
