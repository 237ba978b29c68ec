"""The splits of a packed study, made again from the data."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import niidpart
from niidpart.data import Data
from niidpart.errors import FileFault

from ...disk.plain_folder import RunError
from ...libraries import is_own_code
from ...runs.folder import SPLIT
from ..folder.roster import Roster
from ..folder.study_folder import StudyFolder
from ..plans.expansion import expand_plan
from ..plans.plan import read_plan
from ..plans.plan_text import PlanText, parse_plan_text
from ..plans.split_words import make_split
from .placeless import drop_roots

_NO_CODE = ("name", "label", "file", "keep", "stop_at", "init_from")  # whose values may have a ":"


def derive_splits(
    study: StudyFolder, data_root: str | Path | None, *, trust: bool
) -> dict[str, niidpart.FederatedSplit]:
    """Return the splits that the cells of a study are trained on, by digest.

    data_root: where the data sets lie. trust: whether code runs that the plan names, beside ours.
    FileFault where the data gives others.
    """
    # A root is whoever's machine the file was made on: nobody is led to places of this one.
    words = drop_roots(parse_plan_text(study.read_plan().text))
    _require_trust(study, words, trust=trust)
    fixed = words.get("fixed", {})
    if data_root is not None and isinstance(fixed, Mapping):  # else `read_plan` says what is wrong
        words["fixed"] = {**fixed, "data_root": str(data_root)}
    cells = Roster(study).list_cells().values()
    places = {_find_place(name, at) for cell in cells for name, at in cell.where.items()}
    made: dict[str, niidpart.FederatedSplit] = {}
    data: dict[str, Data] = {}
    seen = set()
    for one in expand_plan(read_plan(PlanText(values=words))):
        # The plan of a study that was begun with --only has more than its cells.
        if one.split.key not in seen and _find_place(one.group, one.where) in places:
            seen.add(one.split.key)
            split = make_split(one.split, data)
            made[split.digest] = split
    wanted = {cell.split for cell in cells}
    missing = sorted(wanted.difference(made))
    if missing:
        raise FileFault(
            f"the data gives other splits than {study.path} was trained on: {len(missing)} of its "
            f"{len(wanted)} digests do not come out, such as {missing[0][:12]}..."
        )
    return {digest: made[digest] for digest in wanted}


def _find_place(group: str, where: Mapping[str, Any]) -> tuple[str, str, Any]:
    """Return what tells the split of a cell from others, as a table knows it."""
    return group, str(where.get("split")), where.get("split_seed")


def _require_trust(study: StudyFolder, words: Mapping[str, Any], *, trust: bool) -> None:
    """Raise RunError where a plan names code outside fltrain that nobody trusts."""
    own = [text for text in _list_texts(words, "plan") if is_own_code(text)]
    if own and not trust:
        raise RunError(
            f"the plan of {study.path} names code outside fltrain, {own[0]}, and making its splits "
            "may run that; look at it, then allow it with --trust (trust=True)"
        )


def _list_texts(value: Any, word: str) -> Iterator[str]:
    """Yield the texts in the words of a plan that may name code: all but those that never do.

    word: whose value it is. A `name` is of a plan, a group or a split, unless it is an algorithm's
    or a transform's.
    """
    if isinstance(value, str) and word not in _NO_CODE:
        yield value
    elif isinstance(value, Mapping):
        for inner, one in value.items():
            is_whose = inner == "name" and word in ("algorithms", "transforms")
            yield from _list_texts(one, word if is_whose else inner)
    elif isinstance(value, list):
        for one in value:
            yield from _list_texts(one, word)


def supply_splits(study: StudyFolder, splits: Mapping[str, niidpart.FederatedSplit]) -> None:
    """Write splits into the folder of a packed study: the study's, and the copies of its runs."""
    for place, content in list_split_files(study, splits):
        (study.path / place).parent.mkdir(exist_ok=True)
        (study.path / place).write_bytes(content)


def list_split_files(
    study: StudyFolder, splits: Mapping[str, niidpart.FederatedSplit]
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of splits by their paths in a study: its own, and the copies of its runs."""
    contents = {digest: niidpart.to_bytes(split) for digest, split in splits.items()}
    for digest, content in contents.items():
        yield str(study.find_split(digest).relative_to(study.path)), content
    cells = Roster(study).list_cells()
    for name in study.places.list_done() & set(cells):
        if cells[name].split in contents:
            copy = study.places.find_cell(name) / SPLIT
            yield str(copy.relative_to(study.path)), contents[cells[name].split]
