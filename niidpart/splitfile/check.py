"""Which rules of docs/format.md a split file breaks: `check(path)`; and the split in it, if it breaks none: `read(path)`.

Rules 1 to 19 are in `guard.py` and `chunks.py`, 20 to 27 in `manifest.py`, those on types and shapes in `layout.py`, 60 to 65 in `verify.py`,
5 to 7 in `sandbox.py`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..features.transforming import draw_columns, name_transforms
from ..splits.recipe import JSON, Recipe
from ..splits.split import PARTS, FederatedSplit, Part, array_digest, empty_part, holdings
from ..transforms import TRANSFORMS
from . import guard, sandbox
from .faults import Fault, Refused, SplitError, refuse
from .layout import KEYS, digest_table, misfits, parts_in, under
from .limits import MAX_HINT
from .manifest import Manifest, json_of, parsed, understood
from .stored import Array, Content, Stored, values


def check(
    path: str | Path,
    *,
    untrusted: bool = False,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> list[Fault]:
    """The broken rules, [] for a valid file. FileNotFoundError where there is none. untrusted, max_memory, timeout: as for `read`."""
    try:
        with door(path, untrusted=untrusted, max_memory=max_memory, timeout=timeout) as content:
            return examine(content).faults
    except SplitError as error:
        return error.faults


def read(
    path: str | Path,
    *,
    untrusted: bool = False,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> FederatedSplit:
    """The split in a file, after every rule of docs/format.md was checked. SplitError names the broken ones; nothing partial is returned.

    untrusted: for a file that comes from elsewhere. The HDF5 library then parses it in a child process, which may take `max_memory` bytes (by
    default 2 GiB; the arrays may not declare more either) and `timeout` seconds (60), and which hands over bare values; its hint is not followed.
    A child that crashes or exceeds them is a broken rule like any other.
    """
    with door(path, untrusted=untrusted, max_memory=max_memory, timeout=timeout) as content:
        faults, split, *_ = examine(content)
    if split is None:
        raise SplitError(path, faults)
    return split


@contextmanager
def door(
    path: str | Path, *, untrusted: bool, max_memory: int | None, timeout: float | None
) -> Iterator[Content]:
    """How a file is opened: here, or in a child process. Where this process has not the memory for its arrays, that is rule 5."""
    if not untrusted and (max_memory is not None or timeout is not None):
        raise UsageError(
            "max_memory and timeout are limits of the child process that reads a file from elsewhere; they go with untrusted=True"
        )
    way = (
        sandbox.opened(path, max_memory=max_memory, timeout=timeout)
        if untrusted
        else guard.opened(path)
    )
    try:
        with way as content:
            yield content
    except MemoryError as error:
        raise SplitError(
            path,
            [Fault(5, "this process has not the memory to read it; read it where there is more")],
        ) from error


class StoredSkew(NamedTuple):
    """What the file says of the skew: map_beta [P], and the table of measures."""

    map_beta: Array
    table: JSON


class Examined(NamedTuple):
    """split: None where there are faults. manifest: None where that is at fault. skew: None where the file states none."""

    faults: list[Fault]
    split: FederatedSplit | None = None
    manifest: Manifest | None = None
    skew: StoredSkew | None = None


def examine(content: Content) -> Examined:
    """Every rule on what a file holds. Later rules are looked at only where the earlier ones hold, since they build on them."""
    manifest, faults = outline(content)
    if manifest is None or faults:
        return Examined(faults, None, manifest)
    recipe, source, arrays = manifest.recipe, manifest.source, content.arrays
    found = {name: _part(name, arrays, source.n, faults) for name in parts_in(arrays)}
    if faults:
        return Examined(faults, None, manifest)
    parts = {
        name: found.get(name) or empty_part(recipe.n_parties, len(source.class_names))
        for name in PARTS
    }
    _shared(parts, source.n, "overlap" in manifest.requires, faults)
    columns = {name: values(a) for name, a in under("parties/", arrays).items()}
    _transforms(recipe, columns, faults)
    draws = {name: values(a) for name, a in under("draws/", arrays).items()}
    split = FederatedSplit(
        recipe, source, **parts, draws=draws, columns=columns, root=hint_root(content)
    )
    _digests(split, manifest.digests, faults)
    skew = _skew(arrays, manifest, faults)
    return Examined(faults, None if faults else split, manifest, skew)


def outline(content: Content) -> tuple[Manifest | None, list[Fault]]:
    """The manifest, and the rules that it and the shapes of the arrays break: all that can be known before the values are read."""
    manifest, faults = understood(json_of("manifest", content.arrays.get("manifest")))
    hint_root(content)
    if manifest is None:
        return None, faults
    return manifest, misfits(
        content.arrays, manifest.recipe, manifest.source, "overlap" in manifest.requires
    )


def hint_root(content: Content) -> str:
    """Where the maker had the data: "" in a file of somebody else, who shall not choose what is opened here."""
    hint = content.arrays.get("hint")
    root = json_of("hint", hint, MAX_HINT).get("root", "") if hint is not None else ""
    return root if content.own and isinstance(root, str) and "\0" not in root else ""


def _part(name: str, arrays: Mapping[str, Stored], n: int, faults: list[Fault]) -> Part | None:
    """Rules 31 to 33 on one part; None if it breaks one. Block by block, so that zeros that inflate well are refused at the first."""
    indptr, indices, counts = (arrays[f"{name}/{key}"] for key in KEYS)
    try:
        bounds = values(indptr)
        risen(name, bounds, indices.shape[0])
        rows = values(indices, Rising(name, bounds, n))
        table = values(
            counts,
            lambda start, block: adds_up(
                name, block, np.diff(bounds[start : start + len(block) + 1])
            ),
        )
    except Refused as refused:
        if refused.fault.rule not in (31, 32, 33):
            raise
        faults.append(refused.fault)
        return None
    return Part(bounds, rows, table)


def risen(name: str, indptr: Ints, n_rows: int) -> None:
    """Rule 31."""
    if indptr[0] != 0 or indptr[-1] != n_rows or (indptr[1:] < indptr[:-1]).any():
        refuse(31, f"/{name}/indptr does not rise from 0 to {n_rows}")


class Rising:
    """Rule 32 on blocks of indices, in order."""

    def __init__(self, name: str, indptr: Ints, n: int):
        self.name, self.indptr, self.n = name, indptr, n
        self.last = -1  # the index before the block

    def __call__(self, start: int, block: Array) -> None:
        if block.min() < 0 or block.max() >= self.n:
            refuse(
                32,
                f"/{self.name}/indices has rows {block.min()}..{block.max()}; the data set has 0..{self.n - 1}",
            )
        falls = np.flatnonzero(block[1:] <= block[:-1]) + start + 1
        if block[0] <= self.last:
            falls = np.append(start, falls)
        begins = self.indptr[
            np.searchsorted(self.indptr, falls)
        ]  # allowed only where the next party begins
        if (begins != falls).any():
            refuse(32, f"/{self.name}/indices does not rise within each party")
        self.last = int(block[-1])


def adds_up(name: str, counts: Array, sizes: Ints) -> None:
    """Rule 33 on some parties."""
    if (counts < 0).any() or (counts.sum(axis=1, dtype=np.int64) != sizes).any():
        refuse(33, f"/{name}/counts does not add up to the sizes of the parties")


def _shared(parts: Mapping[str, Part], n: int, overlap: bool, faults: list[Fault]) -> None:
    """Rules 34 and 35."""
    distinct, across = holdings(parts.values(), n)
    twice = sum(part.n for part in parts.values()) - distinct
    if overlap and across:
        faults.append(Fault(34, f"{across} examples are in two parts"))
    elif twice and not overlap:
        faults.append(Fault(34, f"{twice} examples are held twice"))
    elif overlap and not twice:
        faults.append(
            Fault(35, "the manifest requires overlap, and no two parties share an example")
        )


def _transforms(recipe: Recipe, columns: Mapping[str, Array], faults: list[Fault]) -> None:
    """Rule 41: whoever applies a transform finds its options and its columns. Code that a file names is not run: unknown ones are passed over.

    Names and types are those that one party's columns have: nothing is drawn for the number of parties that a file states.
    """
    one = replace(recipe, n_parties=1)
    for name, t in name_transforms(recipe):
        if t.name not in TRANSFORMS.names():
            continue
        try:
            if TRANSFORMS.complete(t.name, t.params) != t.params:
                raise UsageError("it does not say all options")
            with np.errstate(all="ignore"):
                wanted = draw_columns(one, name, t)
        except (ValueError, ArithmeticError) as error:
            faults.append(Fault(41, f"the transform {name} cannot be applied: {error}"))
            continue
        for key, column in wanted.items():
            if (
                key not in columns
                or columns[key].dtype != column.dtype
                or not np.isfinite(columns[key]).all()
            ):
                faults.append(
                    Fault(41, f"/parties/{key} is missing or not of finite {column.dtype}")
                )


def _digests(split: FederatedSplit, table: Mapping[str, str], faults: list[Fault]) -> None:
    """Rules 50 and 51."""
    right = digest_table(split)
    for name in sorted(right.keys() - {"split"}):
        if table.get(name) != right[name]:
            faults.append(Fault(50, f"the digest of {name} is not the one in the manifest"))
    absent = sorted(table.keys() - right.keys())
    if absent:
        faults.append(
            Fault(
                50,
                f"the manifest has digests of {', '.join(map(ascii, absent[:5]))}, which the file lacks",
            )
        )
    if table["split"] != right["split"]:
        faults.append(
            Fault(
                51,
                f"the digest of the split is {right['split'][:12]}..., the manifest says {table['split'][:12]}...",
            )
        )


def _skew(
    arrays: Mapping[str, Stored], manifest: Manifest, faults: list[Fault]
) -> StoredSkew | None:
    """Rules 53 and 54."""
    if "skew/table" not in arrays:
        if manifest.skew:
            faults.append(Fault(54, "the manifest has digests of /skew, which the file lacks"))
        return None
    beta, raw = values(arrays["skew/map_beta"]), values(arrays["skew/table"])
    if not np.isfinite(beta).all():
        faults.append(Fault(53, "/skew/map_beta is not finite"))
    table = parsed("skew/table", raw.tobytes())
    if not _is_table(table):
        faults.append(
            Fault(
                53, "/skew/table does not say which measures it has, each with its name and version"
            )
        )
    if manifest.skew != {"map_beta": array_digest(beta), "table": array_digest(raw)}:
        faults.append(Fault(54, "the digests of /skew are not those in the manifest"))
    return StoredSkew(beta, table)


def _is_table(table: JSON) -> bool:
    beta, measures = table.get("map_beta"), table.get("measures")
    if (
        not isinstance(beta, dict)
        or type(beta.get("version")) is not int
        or not isinstance(measures, list)
    ):
        return False
    return all(
        isinstance(m, dict)
        and all(
            type(m.get(k)) is kind for k, kind in (("name", str), ("form", str), ("version", int))
        )
        for m in measures
    )
