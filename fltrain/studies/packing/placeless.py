"""What a packed study says of the machine that trained it: nothing that names a place or a person.

Where the data lay, how workers were called (by their machines), tracebacks, and why cells failed
that went on afterwards are left out, and digests over these are made anew. All that decides a
result stays.
"""

from collections.abc import Mapping
from typing import Any

from niidpart.splits.recipe import JSON

from ...disk.sealed import Sealed, seal_text, write_plain_text
from ..cells.searches import Search
from ..folder.roster import DIVERGED
from ..folder.study_folder import StoredPlan
from ..plans.plan_text import parse_plan_text, write_plan_text

_ROOT = "data_root"
_OF_CLAIMS = ("worker", "traceback")
_CAUSE = "cause"  # of a failure: it may quote the path of a file, but where training diverged


def clear_plan(plan: StoredPlan) -> StoredPlan:
    """Return a plan that does not say where data lies."""
    words = parse_plan_text(plan.text)
    cleared = drop_roots(words)
    text = plan.text if cleared == words else write_plan_text(cleared)
    return StoredPlan(
        number=plan.number,
        name=plan.name,
        text=text,
        cells=drop_roots(list(plan.cells)),
        searches=drop_roots(list(plan.searches)),
    )


def rename_results(plan: StoredPlan, cleared: StoredPlan) -> dict[str, str]:
    """Return what the searches of a plan are called in the cleared one, by what they were."""
    renamed = {}
    for before, after in zip(plan.searches, cleared.searches, strict=True):
        renamed[Search.from_json(before).key] = Search.from_json(after).key
    return renamed


def clear_result(value: JSON) -> str:
    """Return the text of what came of a search."""
    return seal_text(drop_roots(value))[0].decode()


def clear_config(sealed: Sealed) -> tuple[str, str]:
    """Return the text of a run's configuration, and its digest."""
    value = sealed.value | {_ROOT: ""}
    if not sealed.digest:  # of an earlier version
        return write_plain_text(value).decode(), ""
    text, digest = seal_text(value)
    return text.decode(), digest


def clear_claim(value: JSON, digests: Mapping[str, str]) -> str:
    """Return the text of a claim, or of its end. digests: of configurations, by what they were."""
    has_diverged = value.get("kind") == DIVERGED
    left_out = _OF_CLAIMS if has_diverged else (*_OF_CLAIMS, _CAUSE)
    kept = {word: one for word, one in value.items() if word not in left_out}
    if has_diverged:
        # The lines after the first say where on this machine its last checkpoint lies.
        kept[_CAUSE] = str(kept.get(_CAUSE, "")).partition("\n")[0]
    if "config" in kept:
        kept["config"] = digests.get(kept["config"], kept["config"])
    return seal_text(kept)[0].decode()


def drop_roots(value: Any) -> Any:
    """Return JSON without the places of data in it."""
    if isinstance(value, Mapping):
        return {word: drop_roots(one) for word, one in value.items() if word != _ROOT}
    if isinstance(value, list):
        return [drop_roots(one) for one in value]
    return value
