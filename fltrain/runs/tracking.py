"""Trackers beside a run: opened before its first round, told of every round, closed at the end."""

import copy
import hashlib
import json
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import TracebackType

from niidpart.errors import UsageError
from niidpart.extras import advise_on_missing

from ..trackers import TRACKERS, Log, PlacedLog, TrackedPlace, TrackedRun, Tracker
from .events import CellDiverged, OnProgress, Progress, RoundDone
from .folder import RUN_ID, RunFolder
from .in_progress import RunInProgress
from .opening import Setup, make_config

# NAME, NAME=PLACE, file.py:function or a function; or several of them.
Track = str | Tracker | Sequence[str | Tracker]


@dataclass(frozen=True)
class AskedTracker:
    """A tracker that was asked for: its function, and the place that the user wants."""

    name: str
    make: Tracker
    place: str


def resolve_trackers(track: Track) -> list[AskedTracker]:
    """Return the trackers that `track` names. UsageError for a name that there is not."""
    asked = [track] if isinstance(track, str) or callable(track) else list(track)
    return [_resolve_tracker(one) for one in asked]


def _resolve_tracker(asked: object) -> AskedTracker:
    if isinstance(asked, str):
        name, _, place = asked.partition("=")
        return AskedTracker(name, TRACKERS.find(name), place)
    if not callable(asked):
        raise UsageError(
            f"track is {asked!r}; give {', '.join(TRACKERS.names())}, file.py:function, or a "
            "function (run) -> context of a log (docs/trackers.md)"
        )
    return AskedTracker(getattr(asked, "__name__", "tracker"), asked, "")


@contextmanager
def open_trackers(
    trackers: Sequence[AskedTracker], setup: Setup, runs: Sequence[RunInProgress]
) -> Iterator[list[list["OpenTracker"]]]:
    """Yield the trackers of each run, opened; [] for each on ranks that are not the first."""
    opened: list[list[OpenTracker]] = [[] for _ in runs]
    if not trackers or not setup.ranks.is_first:
        yield opened
        return
    with ExitStack() as stack:
        for run, of_run in zip(describe_tracked(setup, runs), opened, strict=True):
            for one in trackers:
                tracker = OpenTracker(one.name)
                of_run.append(tracker)
                own = replace(run, place=one.place, config=copy.deepcopy(run.config))
                tracker.open(one.make, own)
                stack.push(tracker.close)
        yield opened


def tell_trackers(opened: Sequence[Sequence["OpenTracker"]], progress: OnProgress) -> OnProgress:
    """Return the progress that the trackers of all runs hear of too."""

    def hear(event: Progress) -> None:
        progress(event)
        if isinstance(event, RoundDone):
            for tracker in opened[event.cell]:
                tracker.log(event)
        elif isinstance(event, CellDiverged):
            for tracker in opened[event.cell]:
                error = RuntimeError(event.cause)
                tracker.close(type(error), error, None)

    return hear


def list_places(opened: Sequence["OpenTracker"]) -> tuple[TrackedPlace, ...]:
    """Return where the trackers of a run have followed it to; those that could not are left out."""
    return tuple(tracker.place for tracker in opened if tracker.place is not None)


def describe_tracked(setup: Setup, runs: Sequence[RunInProgress]) -> list[TrackedRun]:
    """Return what trackers are told of each run."""
    told = []
    for request, cell, start, run in zip(
        setup.requests, setup.cells, setup.starts, runs, strict=True
    ):
        config = make_config(request, cell, setup.execution)
        folder = run.folder
        is_cell = folder is not None and bool(request.numbers)
        name = f"{request.algorithm.name}-{request.split.digest[:8]}-{request.settings.seed}"
        tracked = TrackedRun(
            name=folder.path.resolve().name if folder else name,
            group=folder.path.resolve().parent.name if folder and is_cell else "",
            id=_identify(folder),
            rounds_done=start.rounds_done,
            config=config,
        )
        told.append(tracked)
    return told


def _identify(folder: RunFolder | None) -> str:
    """Return the id of a run: that of its folder, wherever it is moved; of one in memory a new one.

    Of the configuration and of what is drawn when a run is started, so that the same run started
    twice has two. An older folder has nothing drawn. The rounds do not count: a run that gets more
    of them stays the same one.
    """
    if folder is None:
        return secrets.token_hex(8)
    config = folder.config
    settings = {name: value for name, value in config["settings"].items() if name != "rounds"}
    what = json.dumps(config | {"settings": settings}, sort_keys=True)
    drawn = str(folder.environment.get(RUN_ID, ""))
    return hashlib.sha256((what + drawn).encode()).hexdigest()[:16]


class OpenTracker:
    """A tracker of one run. The first time that it fails is said, and it is not asked again."""

    def __init__(self, name: str):
        self.name = name
        self._context: AbstractContextManager[Log] | None = None
        self._log: Log | None = None
        self.place: TrackedPlace | None = None  # known once it is open

    def open(self, make: Tracker, run: TrackedRun) -> None:
        """Begin to follow a run."""

        def enter() -> None:
            context = make(run)
            self._log = log = context.__enter__()
            self._context = context
            placed = log if isinstance(log, PlacedLog) else PlacedLog(log, place=run.place)
            self.place = TrackedPlace(self.name, placed.place, placed.command)

        self._try(enter)

    def log(self, event: RoundDone) -> None:
        """Hand on the metrics of a round."""
        log = self._log
        if log is not None:
            metrics = copy.deepcopy(dict(event.metrics))  # a tracker may change what it is handed
            self._try(lambda: log(event.round, metrics))

    def close(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """End; the error is the one that ends the run, None for none."""
        context, self._context, self._log = self._context, None, None
        if context is not None:
            self._try(lambda: context.__exit__(kind, error, trace), ending=error)
        return False  # the error goes on

    def _try(self, act: Callable[[], object], ending: BaseException | None = None) -> None:
        """Do what a tracker does. Its error is a warning: hours of training do not hang on it.

        Such libraries raise errors of every kind, so all are caught. ending: the run's own error,
        which a tracker passes on.
        """
        try:
            act()
        except (Exception, SystemExit) as error:
            if error is ending:
                return
            self._log = None
            missing = advise_on_missing(error.name or "") if isinstance(error, ImportError) else ""
            reason = f"{type(error).__name__}: {error}"
            if missing:
                reason = f"it is not installed: {missing}"
            warnings.warn(
                f"--track {self.name} cannot follow this run, which goes on without it: {reason}",
                stacklevel=2,
            )
