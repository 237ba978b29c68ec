"""A plan as TOML, for whoever wants to read what is trained."""

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def write_plan(plan: Mapping[str, Any]) -> str:
    """Return a plan as TOML: plain words first, then its tables."""
    lines, tables = [], []
    for word, value in plan.items():
        if isinstance(value, Mapping):
            tables.append(_write_table(f"[{word}]", value))
        elif _is_list_of_tables(value):
            tables += [_write_table(f"[[{word}]]", one) for one in value]
        else:
            lines.append(_write_line(word, value))
    return "\n".join([*lines, *tables])


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _write_table(head: str, table: Mapping[str, Any]) -> str:
    words = [_write_line(word, value) for word, value in table.items()]
    return "\n".join(["", head, *words])


def _write_line(word: str, value: Any) -> str:
    return f"{_write_key(word)} = {_write_value(value)}"


def _write_key(word: str) -> str:
    return word if _BARE.fullmatch(word) else json.dumps(word)


def _write_value(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(_write_line(word, one) for word, one in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list | tuple):
        inside = ", ".join(_write_value(one) for one in value)
        return f"[{inside}]"
    # Texts, numbers, true and false are written alike in JSON.
    return json.dumps(value)
