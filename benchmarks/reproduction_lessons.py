"""What the reproduced tables teach: where algorithms differ beyond their seeds, and where rankings hold."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reproduction_runs import FinishedRun, PackedWork, list_chosen, place_row

from fltrain.evidence.intervals import compute_interval
from fltrain.studies.papers.paper_table import BesideRow, BesideTable

_HEADER = ("split", "algorithm", "n", "ours", "95 % interval", "paper", "beyond seeds")


class Difference(NamedTuple):
    """An algorithm less another one on one split, in the unit of the paper.

    values: of each trial, which both begin alike. interval: of their mean, None where they do not
    tell. printed: the difference of the paper's two means.
    """

    place: str
    algorithm: str
    values: Sequence[float]
    interval: tuple[float, float] | None
    printed: float

    @property
    def mean(self) -> float:
        """Of the trials."""
        return sum(self.values) / len(self.values)

    @property
    def is_beyond(self) -> bool:
        """Whether the interval holds no 0."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]


def tell_lessons(packed: Sequence[PackedWork]) -> str:
    """Return each difference with its interval, and how many are beyond chance."""
    works = [one for one in packed if "against" in one.work]
    found = [
        difference
        for one in works
        for table in one.tables
        for difference in list_differences(table, one.runs, one.work["against"])
    ]
    rows = [_HEADER, ["---"] * len(_HEADER), *map(_write_row, found)]
    beyond = [difference for difference in found if difference.is_beyond]
    agreeing = [one for one in beyond if one.mean * one.printed > 0]
    lines = [
        "### Beyond seeds",
        "",
        f"Each algorithm less {_name_compared(works)}, of trials that have split, initial weights and orders in common, in points of accuracy: "
        "the mean, Student's 95 % interval of it, and the difference of the paper's means. FedProx is the best of its grid on "
        "the test set, so that its row is too good by what such a choice gives.",
        "",
        f"**{len(beyond)} of {len(found)} differences are beyond what seeds do** (one in twenty would be where nothing differs: "
        f"the intervals are not corrected for their number); of these the paper's has the same sign in {len(agreeing)}.",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        *tell_best(works),
        "",
    ]
    return "\n".join(lines)


def _name_compared(works: Sequence[PackedWork]) -> str:
    """Return the algorithms with which the others are compared."""
    return " or ".join(sorted({work.work["against"] for work in works}))


def list_differences(
    table: BesideTable, runs: Sequence[FinishedRun], against: str
) -> list[Difference]:
    """Return how each algorithm of a table differs from one, split by split."""
    rows = [row for row in table.rows if row.mean is not None]
    bases = {place_row(row): row for row in rows if row.where["algorithm"] == against}
    found = []
    for row in rows:
        base = bases.get(place_row(row))
        if base is None or base is row:
            continue
        ours, theirs = (read_trials(one, table, runs) for one in (row, base))
        values = [ours[seed] - theirs[seed] for seed in ours if seed in theirs]
        if not values:  # what is done of the one is not of the other
            continue
        interval = compute_interval(values)
        found.append(
            Difference(
                place=place_row(row),
                algorithm=str(row.where["algorithm"]),
                values=values,
                interval=None if interval is None else (interval.low, interval.high),
                printed=row.printed - base.printed,
            )
        )
    return found


def read_trials(
    row: BesideRow, table: BesideTable, runs: Sequence[FinishedRun]
) -> dict[int, float]:
    """Return what each trial of a row has reached, by its seed, in points of accuracy."""
    chosen = list_chosen(runs, row, table)
    return {run.where["split_seed"]: 100 * run.last[table.metric] for run in chosen}


def tell_best(works: Sequence[PackedWork]) -> list[str]:
    """Return on how many splits the best algorithm is the paper's, and is so beyond seeds."""
    n_splits = n_same = n_beyond = 0
    for one in works:
        for table in one.tables:
            for rows in _group_whole(table).values():
                ranked = sorted(rows, key=lambda row: row.mean or 0.0, reverse=True)
                printed = max(row.printed for row in rows)
                best = [row for row in rows if row.mean == ranked[0].mean]
                n_splits += 1
                n_same += any(row.printed == printed for row in best)
                first, second = (read_trials(row, table, one.runs) for row in ranked[:2])
                interval = compute_interval([first[seed] - second[seed] for seed in first])
                n_beyond += interval is not None and interval.low > 0
    return [
        f"On {n_same} of {n_splits} splits the best algorithm is the one that the paper prints as the best, or one of "
        f"several; on {n_beyond} it is better than the second beyond seeds."
    ]


def _group_whole(table: BesideTable) -> Mapping[str, Sequence[BesideRow]]:
    """Return the rows of each split of which all algorithms have all trials."""
    places: dict[str, list[BesideRow]] = {}
    for row in table.rows:
        places.setdefault(place_row(row), []).append(row)
    return {
        place: rows
        for place, rows in places.items()
        if len(rows) > 1 and all(row.n == row.cells for row in rows)
    }


def _write_row(found: Difference) -> list[str]:
    if found.interval is not None:
        low, high = found.interval
        interval = f"{low:+.2f} to {high:+.2f}"
    else:
        interval = "equal in all" if len(found.values) > 1 else "one trial"
    return [
        found.place,
        found.algorithm,
        str(len(found.values)),
        f"{found.mean:+.2f}",
        interval,
        f"{found.printed:+.1f}",
        "yes" if found.is_beyond else "no",
    ]
