"""The leaderboard as a folder of plain pages: no script, and nothing from elsewhere.

Templates escape every text: names come from entries, which anybody may hand in.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from niidpart.data.known import find_known
from niidpart.page.assembling import open_templates

from ..evidence.layout import write_number
from ..evidence.writing import describe_comparison
from .standings import BoardRow, TaskBoard
from .task import LeaderboardTask

_TEMPLATES = Path(__file__).parent / "templates"
_BADGES = {
    "claimed": "as its author says; nobody has trained any of it again",
    "replayed": "rounds drawn at random were trained again, byte for byte",
    "run again": "somebody else trained all of it, to the same bytes",
}
# They say what can be had without a federation, and what could be with all data in one place.
_BOUNDS = {
    "solo": "each party trains alone, on what it has",
    "centralised": "one party with the data of all, which no federation has",
}


def write_pages(
    tasks: Sequence[LeaderboardTask],
    boards: Sequence[TaskBoard],
    left_out: Mapping[str, str],
) -> list[tuple[str, bytes]]:
    """Return the pages of the site, and the same for machines, by their names."""
    texts = {"index.html": _write_index(tasks, boards, left_out)}
    for task in tasks:
        texts[f"{task.name}.html"] = _write_task(task, _list_boards(task, boards))
    told = [describe_board(board) for board in boards]
    texts["leaderboard.json"] = json.dumps(told, indent=2)
    return [(name, text.encode()) for name, text in texts.items()]


def _list_boards(task: LeaderboardTask, boards: Sequence[TaskBoard]) -> list[TaskBoard]:
    return [board for board in boards if board.task.name == task.name]


def _write_index(
    tasks: Sequence[LeaderboardTask], boards: Sequence[TaskBoard], left_out: Mapping[str, str]
) -> str:
    tracks: dict[str, list[dict[str, object]]] = {}
    for task in tasks:
        told = _describe_task(task, boards)
        tracks.setdefault(task.track, []).append(told)
    named = {}
    for name, why in left_out.items():
        named[_clean(name)] = _clean(why)
    return _render(
        "index.html",
        title="Leaderboard",
        tracks=tracks,
        bounds=_BOUNDS,
        badges=_BADGES,
        left_out=named,
    )


def _describe_task(task: LeaderboardTask, boards: Sequence[TaskBoard]) -> dict[str, object]:
    own = _list_boards(task, boards)
    claims = [_describe_claims(board) for board in own]
    told = "".join(claims) or "-"
    if len(own) > 1:
        divisions = [board.division for board in own]
        pairs = zip(divisions, claims, strict=True)
        told = ". ".join(f"{division} division: {claim}" for division, claim in pairs)
    return {
        "name": task.name,
        "about": task.about,
        "hellinger": task.hellinger,
        "n_rows": sum(len(board.rows) for board in own),
        "claims": _clean(told),
    }


def _describe_claims(board: TaskBoard) -> str:
    """Return the rows of a board that are better than FedAvg's, or "none".

    What is ahead without a claim is named nowhere: another ten seeds might turn it round.
    """
    claimed = [row for row in board.rows if _is_claimed(row)]
    named = [f"{_name_row(row, board.task)}: {row.value}" for row in claimed]
    return "; ".join(named) or "none"


def _is_claimed(row: BoardRow) -> bool:
    return row.comparison is not None and row.comparison.verdict == "first"


def _write_task(task: LeaderboardTask, boards: Sequence[TaskBoard]) -> str:
    return _render(
        "task.html",
        title=task.name,
        task=task,
        get=find_known(str(task.split["dataset"])).get,
        split=_join_words(task.split),
        settings=_join_words(task.fixed),
        boards=[_describe_division(board) for board in boards],
    )


def _describe_division(board: TaskBoard) -> dict[str, object]:
    caption = (
        "mean ± sample deviation (+: fine-tuned at home); sign-flip test in pairs beside FedAvg, "
        "Holm at 0.05 over the rows of one entry: of twenty entries that are no better, one is "
        "expected to claim it"
    )
    if board.missing:
        caption = f"nothing is compared: rows are missing ({', '.join(board.missing)})"
    return {
        "division": board.division,
        "measure": board.measure.title,
        "caption": _clean(caption),
        "rows": [_describe_row(row, board) for row in board.rows],
    }


def _describe_row(row: BoardRow, board: TaskBoard) -> dict[str, object]:
    difference, p = "-", "-"
    found = row.comparison
    if found is not None and found.statistics is not None:
        difference = write_number(board.measure, found.statistics.mean)
        p = "-" if found.p_holm is None else f"{found.p_holm:.4f}"
    return {
        "label": _clean(_name_row(row, board.task)),
        "value": row.value,
        "n": row.n,
        "difference": difference,
        "p": p,
        "claim": _clean(describe_claim(row)),
        "badge": row.badge,
    }


def _name_row(row: BoardRow, task: LeaderboardTask) -> str:
    """Return the label of a row; an entry in a folder of the task's name is called by the other."""
    return row.label.replace(f"/{task.name})", ")")


def describe_claim(row: BoardRow) -> str:
    """Return what is claimed of a row beside FedAvg's, in words."""
    found = row.comparison
    if found is None:
        return ""
    if found.verdict == "first":
        return "better than FedAvg"
    if found.verdict == "second":
        return "worse than FedAvg"
    return found.reason


def _render(template: str, **values: object) -> str:
    templates = open_templates([_TEMPLATES])
    page: str = templates.get_template(template).render(values)
    return page


def _join_words(words: Mapping[str, object]) -> str:
    return ", ".join(f"{word} = {value}" for word, value in words.items())


def _clean(text: str) -> str:
    """Return a text without signs that turn what follows, or that no reader sees."""
    return "".join(sign for sign in text if sign.isprintable())


def describe_board(board: TaskBoard) -> dict[str, object]:
    """Return the rows of a task for machines."""
    return {
        "task": board.task.name,
        "track": board.task.track,
        "division": board.division,
        "measure": board.measure.title,
        "missing": list(board.missing),
        "rows": [_describe_for_machines(row) for row in board.rows],
    }


def _describe_for_machines(row: BoardRow) -> dict[str, object]:
    found = row.comparison
    return {
        "row": row.label,
        "entry": row.entry,
        "badge": row.badge,
        "mean": row.mean,
        "n": row.n,
        "comparison": None if found is None else describe_comparison(found),
    }
