"""Which rules of docs/format.md a split file breaks: `check(path)`. Rules 1 to 20 are in `guard.py`, 60 to 64 in `verify.py`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .guard import Content, Fault, SplitError, load
from .make import TRANSFORMS, columns_of, named_transforms
from .recipe import JSON, Recipe, Source
from .split import FORMAT_MAJOR, PARTS, FederatedSplit, Part, array_digest, empty_part

FORMAT_NAME = "niidpart-split"
UNDERSTOOD: frozenset[str] = frozenset()  # entries of `requires` that this version can read
_HEX = re.compile(r"[0-9a-f]{64}\Z")


def check(path: str | Path) -> list[Fault]:
    """The broken rules, [] for a valid file. FileNotFoundError where there is none."""
    try:
        return examine(load(path))[1]
    except SplitError as error:
        return error.faults


def examine(content: Content) -> tuple[FederatedSplit | None, list[Fault]]:
    """(the split, []) or (None, faults). Later rules are looked at only where the earlier ones hold, since they build on them."""
    faults: list[Fault] = []
    _manifest(content.manifest, faults)
    if faults:
        return None, faults
    recipe, source = Recipe.from_json(content.manifest["recipe"]), Source.from_json(content.manifest["source"])
    present = [name for name in PARTS if name == "train" or any(k.startswith(f"{name}/") for k in content.arrays)]
    found = {name: _part(name, content, recipe, source, faults) for name in present}
    if faults:
        return None, faults
    parts = {name: found.get(name) or empty_part(recipe.n_parties, len(source.class_names)) for name in PARTS}
    _disjoint(parts, source.n, faults)
    columns = {k.removeprefix("parties/"): v for k, v in content.arrays.items() if k.startswith("parties/")}
    draws = {k.removeprefix("draws/"): v for k, v in content.arrays.items() if k.startswith("draws/")}
    for name, column in columns.items():
        if column.shape != (recipe.n_parties,):
            faults.append(Fault(40, f"/parties/{name} has shape {column.shape}; one value for each of {recipe.n_parties} parties is needed"))
    _transforms(recipe, columns, faults)
    root = content.hint.get("root", "")
    split = FederatedSplit(recipe, source, **parts, draws=draws, columns=columns, root=root if isinstance(root, str) else "")
    _digests(split, content.manifest["digests"], faults)
    return (None, faults) if faults else (split, [])


def _manifest(m: JSON, faults: list[Fault]) -> None:
    """Rules 21 to 24."""
    form = m.get("format")
    if not isinstance(form, dict) or form.get("name") != FORMAT_NAME:
        faults.append(Fault(21, f"the manifest's format is {form!r}, not {FORMAT_NAME!r}"))
    elif form.get("major") != FORMAT_MAJOR:
        got = f"format version {form.get('major')!r}"
        faults.append(Fault(21, f"it is of {got}, this niidpart reads version {FORMAT_MAJOR}; install the niidpart that wrote it"))
    requires = m.get("requires")
    unknown = [r for r in requires if not isinstance(r, str) or r not in UNDERSTOOD] if isinstance(requires, list) else [requires]
    if unknown:
        faults.append(Fault(22, f"it requires {', '.join(map(repr, unknown))}, which this niidpart does not know; install a newer one"))
    if faults:
        return
    for rule, name, door in ((23, "recipe", _recipe), (23, "source", _source), (24, "digests", _digest_table)):
        try:
            door(m.get(name))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            faults.append(Fault(rule, f"the manifest's {name} is not as it must be ({error})"))


def _recipe(value: Any) -> None:
    _types(value, {"strategy": str, "params": dict, "n_parties": int, "seed": int, "transforms": list, "val": float, "test": float})
    for t in value["transforms"]:
        _types(t, {"name": str, "params": dict})
    Recipe.from_json(value)


def _source(value: Any) -> None:
    strings = ("name", "labels_sha256", "content_sha256", "revision")
    _types(value, {"n": int, "n_test": int, "class_names": list, "params": dict} | dict.fromkeys(strings, str))
    if value["n"] < 1 or value["n_test"] < 0:
        raise ValueError(f"n is {value['n']} and n_test {value['n_test']}")
    if not value["class_names"] or not all(isinstance(c, str) and c.isprintable() for c in value["class_names"]):
        raise ValueError("class_names is not a list of printable names")
    if not _HEX.match(value["labels_sha256"]):
        raise ValueError("labels_sha256 is no sha256")


def _digest_table(value: Any) -> None:
    if not isinstance(value, dict) or not all(isinstance(v, str) and _HEX.match(v) for v in value.values()) or "split" not in value:
        raise ValueError("a table of sha256 with the entry 'split' is needed")


def _types(value: Any, wanted: dict[str, type]) -> None:
    if not isinstance(value, dict) or set(value) != set(wanted):
        raise ValueError(f"it has {sorted(value) if isinstance(value, dict) else value!r}, exactly {sorted(wanted)} are needed")
    for key, kind in wanted.items():
        if type(value[key]) is not kind:
            raise TypeError(f"{key} is {value[key]!r}, a {kind.__name__} is needed")


def _part(name: str, content: Content, recipe: Recipe, source: Source, faults: list[Fault]) -> Part | None:
    """Rules 30 to 33 on one part; None if it breaks one."""
    before = len(faults)
    arrays = {k: content.arrays.get(f"{name}/{k}") for k in ("indptr", "indices", "counts")}
    P, K = recipe.n_parties, len(source.class_names)
    wide = source.n >= 1 << 31
    needed = {"indptr": ((P + 1,), "int64"), "indices": (None, "int64" if wide else "int32"), "counts": ((P, K), "int32")}
    for key, (shape, kind) in needed.items():
        a = arrays[key]
        if a is None:
            faults.append(Fault(30, f"/{name}/{key} is missing"))
        elif a.dtype != kind or (a.shape != shape if shape else a.ndim != 1):
            faults.append(Fault(30, f"/{name}/{key} is {a.dtype}{list(a.shape)}; {kind}{list(shape) if shape else '[n]'} is needed"))
    indptr, indices, counts = arrays.values()
    if len(faults) > before or indptr is None or indices is None or counts is None:
        return None
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        faults.append(Fault(31, f"/{name}/indptr does not rise from 0 to {len(indices)}"))
        return None
    if len(indices) and (indices.min() < 0 or indices.max() >= source.n):
        faults.append(Fault(32, f"/{name}/indices has rows {indices.min()}..{indices.max()}; the data set has 0..{source.n - 1}"))
        return None
    falls = np.flatnonzero(np.diff(indices) <= 0) + 1  # allowed only where the next party begins
    if not np.isin(falls, indptr).all():
        faults.append(Fault(32, f"/{name}/indices does not rise within each party"))
    if (counts < 0).any() or (counts.sum(axis=1) != np.diff(indptr)).any():
        faults.append(Fault(33, f"/{name}/counts does not add up to the sizes of the parties"))
    return Part(indptr, indices, counts)


def _disjoint(parts: dict[str, Part], n: int, faults: list[Fault]) -> None:
    """Rule 34: no example is held twice, by two parties or in two parts."""
    rows = np.concatenate([part.indices for part in parts.values()])
    if n <= 64 * len(rows) + 65536:
        held = np.zeros(n, bool)
        held[rows] = True
        distinct = int(held.sum())
    else:  # few of many examples are held: no memory for those that are not
        distinct = len(np.unique(rows))
    if distinct != len(rows):
        faults.append(Fault(34, f"{len(rows) - distinct} examples are held twice"))


def _transforms(recipe: Recipe, columns: dict[str, NDArray[Any]], faults: list[Fault]) -> None:
    """Rule 41: whoever applies a transform finds its options and its columns. Code that a file names is not run: unknown ones are passed over."""
    for name, t in named_transforms(recipe):
        if t.name not in TRANSFORMS.names():
            continue
        try:
            if TRANSFORMS.complete(t.name, t.params) != t.params:
                raise ValueError("it does not say all options")
            wanted = columns_of(recipe, name, t)
        except ValueError as error:
            faults.append(Fault(41, f"the transform {name} cannot be applied: {error}"))
            continue
        for key, column in wanted.items():
            if key not in columns or columns[key].dtype != column.dtype or not np.isfinite(columns[key]).all():
                faults.append(Fault(41, f"/parties/{key} is missing or not of finite {column.dtype}"))


def _digests(split: FederatedSplit, table: JSON, faults: list[Fault]) -> None:
    """Rules 50 and 51."""
    compute: dict[str, Callable[[], str]] = {name: lambda p=part: p.digest for name, part in split.parts.items()}  # type: ignore[misc]
    compute |= {f"parties/{k}": lambda v=v: array_digest(v) for k, v in split.columns.items()}  # type: ignore[misc]
    compute |= {f"draws/{k}": lambda v=v: array_digest(v) for k, v in split.draws.items()}  # type: ignore[misc]
    compute |= {f"{k}/counts": lambda p=p: array_digest(p.counts) for k, p in split.parts.items() if p.n}  # type: ignore[misc]
    for name, digest in compute.items():
        if table.get(name) != digest():
            faults.append(Fault(50, f"the digest of {name} is not the one in the manifest"))
    absent = sorted(set(table) - set(compute) - {"split"})
    if absent:
        faults.append(Fault(50, f"the manifest has digests of {', '.join(absent)}, which the file lacks"))
    if table["split"] != split.digest:
        faults.append(Fault(51, f"the digest of the split is {split.digest[:12]}..., the manifest says {table['split'][:12]}..."))
