"""JSON in a split file (rules 20 and 25 of docs/format.md): parsed within narrow limits."""

import json
import math
import re
from typing import Any, NoReturn

import numpy as np

from ..splits.recipe import JSON
from .faults import Refused, refuse
from .limits import MAX_MANIFEST, MAX_NESTING
from .stored import StoredArray, count_bytes, read_values

# Strings as a whole; possessive, so that no text takes more than one pass.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]')


def read_json(name: str, array: StoredArray | None, limit: int = MAX_MANIFEST) -> JSON:
    """Return the JSON object in a row of bytes. Refuses what breaks rules 20 and 25."""
    if array is None:
        refuse(20, f"there is no data set /{name}; this HDF5 file is something else than a split")
    if array.dtype != np.uint8 or len(array.shape) != 1:
        refuse(20, f"/{name} is not a row of bytes")
    if count_bytes(array) > limit:
        refuse(25, f"/{name} has {count_bytes(array)} bytes, more than {limit}")
    return parse_json(name, read_values(array).tobytes())


def parse_json(name: str, raw: bytes) -> JSON:
    """Return the JSON object in a text. Refuses what breaks rule 20.

    The rule: one object in ASCII, no key twice, no number beyond a float, no half character, nested
    at most 8 deep.
    """

    def build_object(items: list[tuple[str, Any]]) -> JSON:
        if len({key for key, _ in items}) < len(items):
            refuse(20, f"/{name} has a key twice")
        return dict(items)

    def refuse_constant(text: str) -> NoReturn:
        refuse(20, f"/{name} holds {text}")

    def parse_float(text: str) -> float:
        if not math.isfinite(float(text)):
            refuse(20, f"/{name} holds {text[:50]}, which is beyond a float")
        return float(text)

    def parse_int(text: str) -> int:
        if len(text) > 300:
            refuse(20, f"/{name} holds {text[:50]}..., which is beyond a float")
        return int(text)

    try:
        text = raw.decode("ascii")
        _require_shallow(name, text)
        value = json.loads(
            text,
            object_pairs_hook=build_object,
            parse_constant=refuse_constant,
            parse_float=parse_float,
            parse_int=parse_int,
        )
        if r"\u" in text:  # half of a pair of surrogates cannot be printed
            json.dumps(value, ensure_ascii=False).encode()
    except ValueError as error:
        raise Refused(20, f"/{name} is no JSON ({str(error)[:200]})") from error
    if not isinstance(value, dict):
        refuse(20, f"/{name} is no JSON object")
    return value


def _require_shallow(name: str, text: str) -> None:
    """Refuse a text that nests deep, before the library recurses into it."""
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth -= 1
        if depth > MAX_NESTING:
            refuse(20, f"/{name} nests deeper than {MAX_NESTING}")
