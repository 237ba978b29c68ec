"""What a finished cell is known by besides its metrics: the sizes of its data. No torch."""

import statistics
from collections.abc import Callable, Mapping, Sequence

import niidpart
from niidpart.splits.recipe import Source

from .cells import StudyCell
from .folder import StudyFolder
from .table import TableRow


def _read_source(study: StudyFolder, cell: StudyCell) -> Source:
    with niidpart.open(study.find_split(cell.split)) as split:
        return split.source


def _count_train(study: StudyFolder, cell: StudyCell) -> float:
    return _read_source(study, cell).n


def _count_test(study: StudyFolder, cell: StudyCell) -> float:
    return _read_source(study, cell).n_test


def _count_classes(study: StudyFolder, cell: StudyCell) -> float:
    return len(_read_source(study, cell).class_names)


# What a table of a paper may be of, in the place of a metric.
FACTS: Mapping[str, Callable[[StudyFolder, StudyCell], float]] = {
    "n_train": _count_train,
    "n_test": _count_test,
    "n_classes": _count_classes,
}


def tabulate_fact(
    study: StudyFolder, cells: Sequence[StudyCell], fact: str, group: str, by: Sequence[str]
) -> list[TableRow]:
    """Return a row for each choice of values on the axes `by`, of the cells of a group."""
    done = study.places.list_done()
    members: dict[tuple[object, ...], list[StudyCell]] = {}
    for cell in cells:
        if group in cell.where:
            place = tuple(cell.where[group].get(axis) for axis in by)
            members.setdefault(place, []).append(cell)
    rows = []
    for place, row in members.items():
        known = [FACTS[fact](study, cell) for cell in row if cell.name in done]
        is_whole = len(known) == len(row)
        rows.append(
            TableRow(
                where=dict(zip(by, place, strict=True)),
                cells=len(row),
                n=len(known),
                mean=statistics.mean(known) if is_whole else None,
                std=statistics.stdev(known) if is_whole and len(known) > 1 else None,
            )
        )
    return rows
