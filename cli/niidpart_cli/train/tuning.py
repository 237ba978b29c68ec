"""What a study has tried: `fltrain study STUDY --tuning`."""

import json
from typing import TYPE_CHECKING, Any

from ..tables import format_table
from ..terminal import say, say_table

if TYPE_CHECKING:
    from fltrain.studies.cells.searches import Search, SearchResult
    from fltrain.studies.folder.study_folder import StudyFolder


def print_tuning(study: "StudyFolder", as_json: bool) -> None:
    """Print every setting that was tried, what it came to, and which one has won."""
    from fltrain.studies.cells.searches import describe_searches
    from fltrain.studies.folder.roster import Roster

    roster = Roster(study)
    decided = roster.list_results()
    undecided = roster.list_undecided()
    if as_json:
        told = [_to_json(search, result) for search, result in decided]
        say(json.dumps(told + [_to_json(search, None) for search in undecided]))
        return
    if not decided and not undecided:
        say(f"the study {study.name} tunes nothing: its plan has no [tuning]")
    names = describe_searches([search for search, _ in decided])
    for name, (search, result) in zip(names, decided, strict=True):
        say(f"{name}: {search.metric}")
        say_table(_format(search, result))
        say()
    if undecided:
        say(f"{len(undecided)} searches are not decided yet")


def _format(search: "Search", result: "SearchResult") -> str:
    """Return a row a setting."""
    words = list(search.points[0])
    rows = []
    for place, one in enumerate(result.tried):
        value = one.cause.split("\n")[0] if one.value is None else f"{one.value:.4f}"
        mark = "won" if place == result.chosen else ""
        rows.append([*[one.values[word] for word in words], value, mark])
    return format_table([*words, "value", ""], rows)


def _to_json(search: "Search", result: "SearchResult | None") -> dict[str, Any]:
    told = {"where": search.where, "metric": search.metric, "runs": search.runs}
    if result is None:
        tried = [{"values": point, "value": None, "cause": ""} for point in search.points]
        return told | {"tried": tried, "chosen": None, "cells": [], "is_decided": False}
    return told | {
        "tried": [vars(one) for one in result.tried],
        "chosen": result.chosen,
        "cells": [cell.name for cell in result.cells],
        "is_decided": True,
    }
