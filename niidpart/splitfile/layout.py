"""Which arrays a split file holds, of which types and shapes (rules 30, 36, 37, 40, 42 and 52), and what their digests are made of."""

import re
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..splits.recipe import Recipe, Source
from ..splits.split import PARTS, FederatedSplit, array_digest
from .faults import Fault
from .limits import DRAW_FACTOR, DRAW_FLOOR, MAX_COLUMNS, MAX_DRAWS, MAX_SKEW
from .stored import Array

KEYS = ("indptr", "indices", "counts")
KNOWN = re.compile(
    r"(manifest|hint|(train|val|test)/(indptr|indices|counts)|(draws|parties)/[^/]+|skew/(map_beta|table))\Z"
)


class Shaped(Protocol):
    """Anything with a shape and a type: an array, or one that is not read yet."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


def arrays_of(split: FederatedSplit) -> dict[str, Array]:
    """Everything that the digests speak of, by its path; what is empty is left out, since the absence says the same."""
    arrays: dict[str, Array] = {}
    for name, part in split.parts.items():
        if part.n:
            arrays |= {
                f"{name}/indptr": part.indptr,
                f"{name}/indices": part.indices,
                f"{name}/counts": part.counts,
            }
    arrays |= {f"draws/{k}": v for k, v in split.draws.items() if v.size}
    return arrays | {f"parties/{k}": v for k, v in split.columns.items()}


def digest_table(split: FederatedSplit) -> dict[str, str]:
    """The manifest's `digests`: of the split, of each part, of its counts, of each draw and column."""
    table = {"split": split.digest} | {name: part.digest for name, part in split.parts.items()}
    return table | {
        name: array_digest(a)
        for name, a in arrays_of(split).items()
        if not name.endswith(("/indptr", "/indices"))
    }


def under(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """{"draws/proportions": a} -> {"proportions": a}."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def parts_in(arrays: Mapping[str, Any]) -> list[str]:
    """The parts that have to be there: train, and each of which something is."""
    return [name for name in PARTS if name == "train" or under(f"{name}/", arrays)]


def misfits(
    arrays: Mapping[str, Shaped], recipe: Recipe, source: Source, overlap: bool
) -> list[Fault]:
    """The rules that types and shapes break. After them, what an array may cost is bounded by what the file stores and by the axes N, P, K."""
    faults: list[Fault] = []
    P, K = recipe.n_parties, len(source.class_names)
    for name in parts_in(arrays):
        faults += _part(name, arrays, P, K, source.n, overlap)
    if faults:
        return faults
    columns, draws = under("parties/", arrays), under("draws/", arrays)
    for name, column in columns.items():
        if tuple(column.shape) != (P,):
            faults.append(
                Fault(
                    40,
                    f"/parties/{name} has shape {tuple(column.shape)}; one value for each of {P} parties is needed",
                )
            )
    if len(columns) > MAX_COLUMNS:
        faults.append(Fault(42, f"/parties has {len(columns)} columns, more than {MAX_COLUMNS}"))
    if len(draws) > MAX_DRAWS:
        faults.append(Fault(37, f"/draws has {len(draws)} draws, more than {MAX_DRAWS}"))
    held = sum(arrays[f"{name}/indices"].shape[0] for name in parts_in(arrays))
    most = DRAW_FACTOR * (held + P * K) + DRAW_FLOOR
    for name, draw in draws.items():
        if _count(draw) > most:
            faults.append(
                Fault(
                    37,
                    f"/draws/{name} has {_count(draw)} values; {held} rows held and {P} x {K} counts allow {most}",
                )
            )
    return faults + _skew(under("skew/", arrays), P)


def _part(
    name: str, arrays: Mapping[str, Shaped], P: int, K: int, n: int, overlap: bool
) -> list[Fault]:
    """Rules 30 and 36 on one part."""
    faults = []
    needed = {
        "indptr": ((P + 1,), "int64"),
        "indices": (None, "int64" if n >= 1 << 31 else "int32"),
        "counts": ((P, K), "int32"),
    }
    for key, (shape, kind) in needed.items():
        a = arrays.get(f"{name}/{key}")
        if a is None:
            faults.append(Fault(30, f"/{name}/{key} is missing"))
        elif a.dtype != kind or (tuple(a.shape) != shape if shape else len(a.shape) != 1):
            faults.append(
                Fault(
                    30,
                    f"/{name}/{key} is {a.dtype}{list(a.shape)}; {kind}{list(shape) if shape else '[n]'} is needed",
                )
            )
        elif key == "indices" and a.shape[0] > n * (P if overlap else 1):
            held = f"{P} x {n}" if overlap else f"{n}"
            faults.append(Fault(36, f"/{name}/indices has {a.shape[0]} rows; {held} can be held"))
    return faults


def _skew(skew: Mapping[str, Shaped], P: int) -> list[Fault]:
    """Rule 52."""
    faults = []
    if skew and sorted(skew) != ["map_beta", "table"]:
        faults.append(
            Fault(
                52,
                f"/skew has {' and '.join(sorted(skew))} alone; map_beta and table belong together",
            )
        )
    beta, table = skew.get("map_beta"), skew.get("table")
    if beta is not None and (beta.dtype != "float64" or tuple(beta.shape) != (P,)):
        faults.append(
            Fault(52, f"/skew/map_beta is {beta.dtype}{list(beta.shape)}; float64[{P}] is needed")
        )
    if table is not None and (
        table.dtype != "uint8" or len(table.shape) != 1 or _count(table) > MAX_SKEW
    ):
        faults.append(
            Fault(
                52,
                f"/skew/table is {table.dtype}{list(table.shape)}; uint8 of at most {MAX_SKEW} is needed",
            )
        )
    return faults


def _count(array: Shaped) -> int:
    n = 1
    for length in array.shape:
        n *= int(length)
    return n
