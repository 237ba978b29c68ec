"""Whether a path is the folder of a run, and what else it is."""

from collections.abc import Iterable
from pathlib import Path

from ..disk.plain_folder import PlainFolder, RunError
from ..disk.replacing import is_replacing
from .configuration import CONFIG
from .sweep_folder import is_sweep

_NAMED = 8  # runs that an error names


def require_run_folder(path: str | Path) -> None:
    """Raise RunError where a path is a sweep, a file, or a folder without a run's configuration."""
    if is_sweep(path):
        raise RunError(
            f"{path} is a sweep; name the run folders in it: {path}/*, "
            f"or go on with all of it: fltrain resume {path}"
        )
    if Path(path).is_file():
        raise RunError(
            f"{path} is a file, no run folder; if it is a split file, niidpart verify {path} "
            f"checks it, and fltrain run {path} trains on it"
        )
    if not PlainFolder(Path(path)).has(CONFIG):
        there_is_none = f"{path} is no run folder: there is no {CONFIG} in it"
        raise RunError(f"{there_is_none}{_name_runs_inside(Path(path))}")
    _require_settled(Path(path))


def _require_settled(path: Path) -> None:
    """Raise RunError where a change of the rounds of a run, or of its sweep, is under way."""
    sweep = path.resolve().parent
    for folder in [path, sweep] if is_sweep(sweep) else [path]:
        if is_replacing(folder):
            raise RunError(
                f"{folder} is getting another number of rounds, and that was cut short, unless it "
                f"goes on just now; fltrain resume {folder} brings it to its end"
            )


def require_plain(folder: PlainFolder, names: Iterable[str]) -> None:
    """Raise RunError where one of the names is a link, or no regular file."""
    for name in names:
        folder.has(name)


def _name_runs_inside(path: Path) -> str:
    """Return which run folders and sweeps lie in a folder that is neither; "" where none does."""
    names = PlainFolder(path).list_names()
    inside = [name for name in names if (path / name / CONFIG).is_file() or is_sweep(path / name)]
    if not inside:
        return ""
    shown = ", ".join(inside[:_NAMED])
    if len(inside) > _NAMED:
        shown += f" and {len(inside) - _NAMED} more"
    return f"; it holds the runs {shown}: name one, as {path / inside[0]}"
