"""A study is worked on: an engine starts workers, and is asked again while they get further."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niidpart.errors import UsageError

from .beats import Watch
from .cells import StudyCell
from .engines import WORK_ENGINES, WorkOrder
from .folder import StudyFolder
from .standing import StudyStanding, StudyWatch

_POLL = 0.5  # seconds between two looks at the folder

OnStanding = Callable[[StudyStanding, float | None], None]
OnNews = Callable[[str], None]


@dataclass
class StudyDirector:
    """Has a study worked on by an engine until nothing is left, or its workers get no further."""

    study: StudyFolder
    cells: Mapping[str, StudyCell]
    trust: bool
    anywhere: bool
    on_standing: OnStanding
    on_news: OnNews

    def run(self, engine: str, workers: int | None, options: Mapping[str, Any]) -> StudyStanding:
        """Start workers, and wait for them."""
        record = WORK_ENGINES.record(engine)
        reason = record.why_not()
        if reason:
            raise UsageError(f"engine {engine} cannot be had here: {reason}")
        watch = StudyWatch(self.study, Watch(self.study.workers), list(self.cells))
        standing = watch.look()
        while _count_unended(standing):
            before = standing.count("done") + standing.count("failed")
            crew = record.start(self._order(standing, workers), **options)
            try:
                while crew.count_working():
                    time.sleep(_POLL)
                    self._tell(crew.list_news())
                    standing = watch.look()
                    self.on_standing(standing, watch.estimate_left(standing))
            finally:
                crew.stop()
                self._tell(crew.list_news())
            standing = watch.look()
            self.on_standing(standing, watch.estimate_left(standing))
            if standing.count("done") + standing.count("failed") == before:
                break  # workers find nothing that they may claim
        return standing

    def _order(self, standing: StudyStanding, workers: int | None) -> WorkOrder:
        # The command of this package: an engine brings it to where the same is installed.
        command = [sys.executable, "-m", "niidpart_cli.train", "work", str(self.study.path)]
        command += ["--trust"] * self.trust + ["--anywhere"] * self.anywhere
        unended = [one.name for one in standing.cells if one.state not in ("done", "failed")]
        return WorkOrder(
            folder=self.study.path,
            command=tuple(command),
            cells=len(unended),
            seconds=sum(self.cells[name].seconds for name in unended),
            workers=workers,
        )

    def _tell(self, news: Sequence[str]) -> None:
        for one in news:
            self.on_news(one)


def _count_unended(standing: StudyStanding) -> int:
    """Return how many cells are neither done nor failed."""
    return len(standing.cells) - standing.count("done") - standing.count("failed")
