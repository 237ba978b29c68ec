"""The manifest: what a split file says of itself (rules 21 to 27 of docs/format.md)."""

import re
from dataclasses import dataclass
from typing import Any

from ..errors import FileFault
from ..splits.digests import FORMAT_MAJOR
from ..splits.recipe import JSON, Recipe, Source
from .faults import Fault
from .limits import MAX_CLASS_NAME, MAX_EXAMPLES, MAX_TRANSFORMS

FORMAT_NAME = "niidpart-split"
UNDERSTOOD = frozenset({"overlap"})  # entries of `requires` that this version can read
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True)
class Manifest:
    """A manifest that keeps its rules.

    digests: by name. minor: the version within the major one. written_by: the program. skew: the
    digests of /skew/...
    """

    recipe: Recipe
    source: Source
    digests: dict[str, str]
    requires: frozenset[str]
    minor: int
    written_by: str
    skew: dict[str, str]


def parse_manifest(value: JSON) -> tuple[Manifest | None, list[Fault]]:
    """Return (the manifest, []), or (None, the rules that it breaks)."""
    faults = _check_format(value.get("format"))
    faults += _check_requires(value.get("requires"))
    if faults:
        return None, faults
    faults = _check_entries(value)
    if faults:
        return None, faults
    recipe = Recipe.from_json(value["recipe"])
    source = Source.from_json(value["source"])
    faults = _check_sizes(recipe, source)
    if faults:
        return None, faults
    written_by: str = value["written_by"] if _is_printable(value.get("written_by")) else ""
    manifest = Manifest(
        recipe=recipe,
        source=source,
        digests=value["digests"],
        requires=frozenset(value["requires"]),
        minor=value["format"]["minor"],
        written_by=written_by,
        skew=value.get("skew") or {},
    )
    return manifest, []


def _check_format(form: Any) -> list[Fault]:
    if not isinstance(form, dict) or form.get("name") != FORMAT_NAME:
        return [Fault(21, f"the manifest's format is {_shorten(form)}, not {FORMAT_NAME!r}")]
    major, minor = form.get("major"), form.get("minor")
    are_numbers = type(major) is int and type(minor) is int
    if are_numbers and major == FORMAT_MAJOR:
        return []
    message = (
        f"it is of format version {_shorten(major)}.{_shorten(minor)}, this niidpart reads version "
        f"{FORMAT_MAJOR}; install the niidpart that wrote it"
    )
    return [Fault(21, message)]


def _check_requires(requires: Any) -> list[Fault]:
    if isinstance(requires, list):
        unknown = [r for r in requires if not isinstance(r, str) or r not in UNDERSTOOD]
    else:
        unknown = [requires]
    if not unknown:
        return []
    names = ", ".join(map(_shorten, unknown[:5]))
    message = f"it requires {names}, which this niidpart does not know; install a newer one"
    return [Fault(22, message)]


def _check_entries(value: JSON) -> list[Fault]:
    faults = []
    checks = (
        (23, "recipe", _require_recipe),
        (23, "source", _require_source),
        (24, "digests", _require_digests),
        (24, "skew", _require_skew),
    )
    for rule, name, require in checks:
        try:
            require(value.get(name))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            reason = str(error)[:500]
            message = f"the manifest's {name} is not as it must be ({reason})"
            faults.append(Fault(rule, message))
    return faults


def _check_sizes(recipe: Recipe, source: Source) -> list[Fault]:
    """Return the faults of rules 26 and 27.

    The number of parties is held to what is stored: `indptr` has an entry for each (rule 30).
    """
    faults = []
    for name, n in (("n", source.n), ("n_test", source.n_test)):
        if n > MAX_EXAMPLES:
            faults.append(Fault(26, f"{name} is {n}, more than {MAX_EXAMPLES}"))
    longest = max(map(len, source.class_names))
    if longest > MAX_CLASS_NAME:
        message = f"a class has a name of {longest} characters, more than {MAX_CLASS_NAME}"
        faults.append(Fault(26, message))
    n_transforms = len(recipe.transforms)
    if n_transforms > MAX_TRANSFORMS:
        message = f"the recipe has {n_transforms} transforms, more than {MAX_TRANSFORMS}"
        faults.append(Fault(27, message))
    return faults


_RECIPE = {
    "strategy": str,
    "params": dict,
    "n_parties": int,
    "seed": int,
    "transforms": list,
    "val": float,
    "test": float,
}
_SOURCE = {
    "name": str,
    "n": int,
    "n_test": int,
    "class_names": list,
    "labels_sha256": str,
    "content_sha256": str,
    "revision": str,
    "params": dict,
}


def _require_recipe(value: Any) -> None:
    _require_entries(value, _RECIPE)
    for transform in value["transforms"]:
        _require_entries(transform, {"name": str, "params": dict})
    for name in (value["strategy"], *(t["name"] for t in value["transforms"])):
        _require_printable(name)
    for params in (value["params"], *(t["params"] for t in value["transforms"])):
        _require_cited(params)
    Recipe.from_json(value)


def _require_cited(params: JSON) -> None:
    """Raise where an option that cites something by its digest holds none."""
    for name, digest in params.items():
        if name.endswith("_sha256") and digest != "" and not _is_sha256(digest):
            raise FileFault(f"{_shorten(name)} is {_shorten(digest)}, which is no sha256")


def _require_source(value: Any) -> None:
    _require_entries(value, _SOURCE)
    if value["n"] < 1 or value["n_test"] < 0:
        raise FileFault(f"n is {value['n']} and n_test {value['n_test']}")
    names = value["class_names"]
    if not names or not all(map(_is_printable, names)):
        raise FileFault("class_names is not a list of printable names")
    _require_printable(value["name"])
    _require_printable(value["revision"])
    if not _SHA256.match(value["labels_sha256"]):
        raise FileFault("labels_sha256 is no sha256")
    if value["content_sha256"] and not _SHA256.match(value["content_sha256"]):
        raise FileFault("content_sha256 is no sha256")


def _require_digests(value: Any) -> None:
    is_table = isinstance(value, dict) and "split" in value
    if not is_table or not all(map(_is_sha256, value.values())):
        raise FileFault("a table of sha256 with the entry 'split' is needed")


def _require_skew(value: Any) -> None:
    if value is None:
        return
    _require_entries(value, {"map_beta": str, "table": str})
    if not all(map(_is_sha256, value.values())):
        raise FileFault("a table of sha256 is needed")


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.match(value) is not None


def _is_printable(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def _require_printable(text: str) -> None:
    if not text.isprintable():
        raise FileFault(f"{_shorten(text)} is not printable")


def _require_entries(value: Any, kinds: dict[str, type]) -> None:
    """Raise where a value is no dict of exactly these entries, each of its type."""
    if not isinstance(value, dict) or set(value) != set(kinds):
        entries = sorted(value) if isinstance(value, dict) else value
        got = _shorten(entries)
        raise FileFault(f"it has {got}, exactly {sorted(kinds)} are needed")
    for key, kind in kinds.items():
        if type(value[key]) is not kind:
            got = _shorten(value[key])
            raise FileFault(f"{key} is {got}, a {kind.__name__} is needed")


def _shorten(value: Any) -> str:
    """Return an untrusted value for a message: its repr, escaped and not too long."""
    if isinstance(value, str | list | dict) and len(value) >= 100:
        start = list(value)[:10]
        text = f"{start!a}..."
    else:
        text = ascii(value)
    if len(text) < 200:
        return text
    return f"{text[:200]}..."
