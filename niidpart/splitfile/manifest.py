"""The manifest: what a split file says of itself (rules 20 to 27 of docs/format.md)."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..errors import UsageError
from ..splits.recipe import JSON, Recipe, Source
from ..splits.split import FORMAT_MAJOR
from .faults import Fault, Refused, refuse
from .limits import MAX_CLASS_NAME, MAX_EXAMPLES, MAX_MANIFEST, MAX_NESTING, MAX_TRANSFORMS
from .stored import Stored, n_bytes, values

FORMAT_NAME = "niidpart-split"
UNDERSTOOD = frozenset({"overlap"})  # entries of `requires` that this version can read
_HEX = re.compile(r"[0-9a-f]{64}\Z")
_BRACKETS = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]'
)  # strings as a whole; possessive, so that no text takes more than one pass


@dataclass(frozen=True)
class Manifest:
    """recipe, source, digests by name, requires; minor: the version within the major one; written_by: the program; skew: digests of /skew/..."""

    recipe: Recipe
    source: Source
    digests: dict[str, str]
    requires: frozenset[str]
    minor: int
    written_by: str
    skew: dict[str, str]


def understood(value: JSON) -> tuple[Manifest | None, list[Fault]]:
    """(the manifest, []) or (None, the rules that it breaks)."""
    faults: list[Fault] = []
    form = value.get("format")
    if not isinstance(form, dict) or form.get("name") != FORMAT_NAME:
        faults.append(Fault(21, f"the manifest's format is {_short(form)}, not {FORMAT_NAME!r}"))
    elif (
        type(form.get("major")) is not int
        or form["major"] != FORMAT_MAJOR
        or type(form.get("minor")) is not int
    ):
        got = f"format version {_short(form.get('major'))}.{_short(form.get('minor'))}"
        faults.append(
            Fault(
                21,
                f"it is of {got}, this niidpart reads version {FORMAT_MAJOR}; install the niidpart that wrote it",
            )
        )
    requires = value.get("requires")
    unknown = (
        [r for r in requires if not isinstance(r, str) or r not in UNDERSTOOD]
        if isinstance(requires, list)
        else [requires]
    )
    if unknown:
        faults.append(
            Fault(
                22,
                f"it requires {', '.join(map(_short, unknown[:5]))}, which this niidpart does not know; install a newer one",
            )
        )
    if faults:
        return None, faults
    doors = (
        (23, "recipe", _recipe),
        (23, "source", _source),
        (24, "digests", _digest_table),
        (24, "skew", _skew),
    )
    for rule, name, door in doors:
        try:
            door(value.get(name))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            faults.append(
                Fault(rule, f"the manifest's {name} is not as it must be ({str(error)[:500]})")
            )
    if faults:
        return None, faults
    recipe, source = Recipe.from_json(value["recipe"]), Source.from_json(value["source"])
    faults += _sizes(recipe, source)
    written_by = value.get("written_by")
    made = Manifest(
        recipe,
        source,
        value["digests"],
        frozenset(value["requires"]),
        value["format"]["minor"],
        written_by if isinstance(written_by, str) and written_by.isprintable() else "",
        value.get("skew") or {},
    )
    return (None, faults) if faults else (made, [])


def _sizes(recipe: Recipe, source: Source) -> list[Fault]:
    """Rules 26 and 27. The number of parties is held to what is stored: `indptr` has an entry for each (rule 30)."""
    faults = [
        Fault(26, f"{name} is {n}, more than {MAX_EXAMPLES}")
        for name, n in (("n", source.n), ("n_test", source.n_test))
        if n > MAX_EXAMPLES
    ]
    longest = max(map(len, source.class_names))
    if longest > MAX_CLASS_NAME:
        faults.append(
            Fault(26, f"a class has a name of {longest} characters, more than {MAX_CLASS_NAME}")
        )
    if len(recipe.transforms) > MAX_TRANSFORMS:
        faults.append(
            Fault(
                27,
                f"the recipe has {len(recipe.transforms)} transforms, more than {MAX_TRANSFORMS}",
            )
        )
    return faults


def _recipe(value: Any) -> None:
    _types(
        value,
        {
            "strategy": str,
            "params": dict,
            "n_parties": int,
            "seed": int,
            "transforms": list,
            "val": float,
            "test": float,
        },
    )
    for t in value["transforms"]:
        _types(t, {"name": str, "params": dict})
    _printable([value["strategy"], *(t["name"] for t in value["transforms"])])
    Recipe.from_json(value)


def _source(value: Any) -> None:
    strings = ("name", "labels_sha256", "content_sha256", "revision")
    _types(
        value,
        {"n": int, "n_test": int, "class_names": list, "params": dict}
        | dict.fromkeys(strings, str),
    )
    if value["n"] < 1 or value["n_test"] < 0:
        raise UsageError(f"n is {value['n']} and n_test {value['n_test']}")
    if not value["class_names"] or not all(
        isinstance(c, str) and c.isprintable() for c in value["class_names"]
    ):
        raise UsageError("class_names is not a list of printable names")
    _printable([value["name"], value["revision"]])
    if not _HEX.match(value["labels_sha256"]):
        raise UsageError("labels_sha256 is no sha256")
    if value["content_sha256"] and not _HEX.match(value["content_sha256"]):
        raise UsageError("content_sha256 is no sha256")


def _digest_table(value: Any) -> None:
    if (
        not isinstance(value, dict)
        or not all(isinstance(v, str) and _HEX.match(v) for v in value.values())
        or "split" not in value
    ):
        raise UsageError("a table of sha256 with the entry 'split' is needed")


def _skew(value: Any) -> None:
    if value is not None:
        _types(value, {"map_beta": str, "table": str})
        if not all(map(_HEX.match, value.values())):
            raise UsageError("a table of sha256 is needed")


def _printable(texts: list[str]) -> None:
    for text in texts:
        if not text.isprintable():
            raise UsageError(f"{_short(text)} is not printable")


def _types(value: Any, wanted: dict[str, type]) -> None:
    if not isinstance(value, dict) or set(value) != set(wanted):
        raise UsageError(
            f"it has {_short(sorted(value) if isinstance(value, dict) else value)}, exactly {sorted(wanted)} are needed"
        )
    for key, kind in wanted.items():
        if type(value[key]) is not kind:
            raise TypeError(f"{key} is {_short(value[key])}, a {kind.__name__} is needed")


def _short(value: Any) -> str:
    """A stranger's value in an error: its repr, escaped and not too long."""
    text = (
        ascii(value)
        if not isinstance(value, str | list | dict) or len(value) < 100
        else ascii(list(value)[:10]) + "..."
    )
    return text if len(text) < 200 else f"{text[:200]}..."


def json_of(name: str, array: Stored | None, limit: int = MAX_MANIFEST) -> JSON:
    """The JSON object in a row of bytes. Rules 20 and 25."""
    if array is None:
        refuse(20, f"there is no data set /{name}; this HDF5 file is something else than a split")
    if array.dtype != np.uint8 or len(array.shape) != 1:
        refuse(20, f"/{name} is not a row of bytes")
    if n_bytes(array) > limit:
        refuse(25, f"/{name} has {n_bytes(array)} bytes, more than {limit}")
    return parsed(name, values(array).tobytes())


def parsed(name: str, raw: bytes) -> JSON:
    """Rule 20: one JSON object in ASCII, no key twice, no number beyond a float, no half character, nested at most 8 deep."""

    def pairs(items: list[tuple[str, Any]]) -> JSON:
        if len({k for k, _ in items}) < len(items):
            refuse(20, f"/{name} has a key twice")
        return dict(items)

    def constant(text: str) -> NoReturn:
        refuse(20, f"/{name} holds {text}")

    def number(text: str) -> float:
        if not math.isfinite(float(text)):
            refuse(20, f"/{name} holds {text[:50]}, which is beyond a float")
        return float(text)

    def whole(text: str) -> int:
        if len(text) > 300:
            refuse(20, f"/{name} holds {text[:50]}..., which is beyond a float")
        return int(text)

    try:
        text = raw.decode("ascii")
        deepest = depth = 0
        for match in _BRACKETS.finditer(text):
            depth += (match[0] in "[{") - (match[0] in "]}")
            deepest = max(deepest, depth)
            if deepest > MAX_NESTING:
                refuse(20, f"/{name} nests deeper than {MAX_NESTING}")
        value = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_constant=constant,
            parse_float=number,
            parse_int=whole,
        )
        if r"\u" in text:
            json.dumps(
                value, ensure_ascii=False
            ).encode()  # half of a pair of surrogates cannot be printed
    except ValueError as error:
        raise Refused(20, f"/{name} is no JSON ({str(error)[:200]})") from error
    if not isinstance(value, dict):
        refuse(20, f"/{name} is no JSON object")
    return value
