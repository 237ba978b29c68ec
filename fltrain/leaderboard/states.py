"""What an entry came to, as one digest: a verdict is of it and of no other."""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path

from ..runs.folder import RunFolder
from ..studies.folder.roster import Roster
from ..studies.folder.study_folder import StudyFolder

__all__ = ["digest_entry", "digest_states", "read_states"]


def read_states(study: StudyFolder, cells: Collection[str]) -> dict[str, str]:
    """Return the digest of the whole history of each run, by its name."""
    states = {}
    places = study.places
    for name in sorted(places.list_done() & set(cells)):
        run = RunFolder.open(places.find_cell(name))
        logged = run.metrics_log.read()
        states[name] = ""
        if logged:
            states[name] = logged[-1].chain
    return states


def digest_states(states: Mapping[str, str]) -> str:
    """Return the digest that a verdict is of; "" for an entry that is not whole."""
    if not states:
        return ""
    text = json.dumps(dict(states), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def digest_entry(entry: str | Path) -> str:
    """Return the digest of an entry as it lies there."""
    study = StudyFolder.open(entry)
    cells = Roster(study).list_cells()
    return digest_states(read_states(study, cells))
