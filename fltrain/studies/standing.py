"""How a study stands: what is done, what runs, what failed. Needs no torch."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from niidpart.splits.recipe import JSON

from .beats import Watch
from .folder import StudyFolder

CellState = Literal["done", "running", "stopped", "failed", "open"]


@dataclass(frozen=True)
class CellStanding:
    """How a cell stands. cause: of a failure. worker, rounds: of one that runs."""

    name: str
    state: CellState
    cause: str = ""
    worker: str = ""
    rounds: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class StudyStanding:
    """How a study stands.

    beyond: finished cells of earlier plans, which the newest does not ask for.
    """

    name: str
    cells: Sequence[CellStanding]
    beyond: int = 0

    def count(self, state: CellState) -> int:
        """Return how many cells stand so."""
        return sum(cell.state == state for cell in self.cells)

    @property
    def reached(self) -> float:
        """The cells that are done, with the parts that running ones have reached."""
        parts = [cell.rounds[0] / cell.rounds[1] for cell in self.cells if cell.rounds[1]]
        return self.count("done") + sum(parts)

    @property
    def is_over(self) -> bool:
        """Whether no cell is open or runs: each is done, or has failed."""
        return self.count("done") + self.count("failed") == len(self.cells)

    def to_json(self) -> JSON:
        """Return it for machines."""
        states: list[CellState] = ["done", "running", "stopped", "failed", "open"]
        counts: JSON = {state: self.count(state) for state in states}
        told = [
            {"cell": cell.name, "state": cell.state, "cause": cell.cause, "worker": cell.worker}
            for cell in self.cells
        ]
        return {"study": self.name, **counts, "beyond": self.beyond, "cells": told}


@dataclass
class StudyWatch:
    """Looks at a study again and again."""

    study: StudyFolder
    watch: Watch
    names: Sequence[str] = field(default_factory=list)
    _began: tuple[float, float] | None = None

    def look(self) -> StudyStanding:
        """Return how the study stands now."""
        # Claims first: a cell that is finished between the two looks is done, and not stopped.
        standings = self.study.claims.list_standings(self.names)
        done = self.study.places.list_done()
        beats: dict[str, JSON] = {}
        cells = []
        for name in self.names:
            if name in done:
                cells.append(CellStanding(name, "done"))
            else:
                cells.append(self._describe(name, standings[name], beats))
        return StudyStanding(self.study.name, cells, beyond=len(done.difference(self.names)))

    def estimate_left(self, standing: StudyStanding) -> float | None:
        """Return the seconds until all is done, by the pace since the first look; None at first."""
        now = time.monotonic()
        if self._began is None:
            self._began = now, standing.reached
        began, reached = self._began
        gained = standing.reached - reached
        if gained <= 0:
            return None
        left = len(standing.cells) - standing.count("failed") - standing.reached
        return left * (now - began) / gained

    def _describe(self, name: str, standing: Any, beats: dict[str, JSON]) -> CellStanding:
        claims = self.study.claims
        if standing.has_failed:
            end = claims.read_end(name, standing.number)
            cause = str(end.get("cause", "")).split("\n")[0]
            return CellStanding(name, "failed", cause=f"{end.get('kind')}: {cause}")
        if standing.is_ended:
            return CellStanding(name, "stopped" if standing.number else "open")
        worker = str(claims.read_claim(name, standing.number).get("worker", ""))
        if self.watch.judge(worker) == "dead":
            return CellStanding(name, "stopped", worker=worker)
        if worker not in beats:
            beats[worker] = self.watch.read(worker)
        doing: Mapping[str, Any] = beats[worker].get("doing", {})
        round, rounds = doing.get(name, (0, 0))
        return CellStanding(name, "running", worker=worker, rounds=(round, rounds))
