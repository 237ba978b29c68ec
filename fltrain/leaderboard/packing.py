"""An entry as one small file: the folder of its study without splits and tensors.

A replay makes both anew, the splits from the data and the states from round 0. What stays is what
nobody could make anew: the plan, what each run was asked for and on what, its metrics with the
digests of all its states, and the claims. The file is a JSON mapping of path to text, packed by xz.
"""

import contextlib
import json
import lzma
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import niidpart
from niidpart.data.readers.json_file import read_json_file
from niidpart.errors import FileFault, UsageError
from niidpart.files import write_whole

from ..disk.plain_folder import PlainFolder
from ..runs.configuration import CONFIG
from ..runs.ending import DIVERGED
from ..runs.finding import STUDY_MARK
from ..runs.folder import ENVIRONMENT, SPLIT
from ..runs.metrics_log import METRICS
from ..studies.folder.roster import Roster
from ..studies.folder.study_folder import StudyFolder, is_study

__all__ = ["PACKED", "is_packed", "name_entry", "open_entry", "pack_entry", "supply_splits"]

PACKED = ".json.xz"
_OF_STUDY = ("plans", "winners", "claims")
_OF_RUN = (CONFIG, ENVIRONMENT, METRICS, DIVERGED)
_NAME = r"[A-Za-z0-9_+-][A-Za-z0-9_+.-]{0,199}"  # no file system takes much longer ones
# Nothing but these is written, whoever made the file: no tensors, and no split but our own.
_PATH = re.compile(
    rf"{re.escape(STUDY_MARK)}|({'|'.join(_OF_STUDY)})/{_NAME}"
    rf"|cells/{_NAME}/({'|'.join(map(re.escape, _OF_RUN))})"
)
_MOST = 100_000  # files of an entry; a tuned one has some 2,000


def is_packed(path: str | Path) -> bool:
    """Return whether a path is that of a packed entry, by its ending."""
    return str(path).endswith(PACKED) and Path(path).is_file()


def name_entry(path: Path, folder: Path) -> str:
    """Return the name of an entry among others: its path in their folder, without the ending."""
    return str(path.relative_to(folder)).removesuffix(PACKED)


def pack_entry(entry: str | Path, out: str | Path) -> Path:
    """Write an entry as one file, and return its path.

    Parameters
    ----------
    entry : str or Path
        The folder of its study.
    out : str or Path
        NAME.json.xz.

    Returns
    -------
    Path

    Raises
    ------
    UsageError
        For another ending.
    RunError
        The folder is no study, or a file of it is a link.
    """
    if not str(out).endswith(PACKED):
        raise UsageError(f"{out} does not end in {PACKED}, by which a packed entry is known")
    study = StudyFolder.open(entry)
    text = json.dumps(_read_texts(study), indent=0)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    write_whole(Path(out), packed)
    return Path(out)


def _read_texts(study: StudyFolder) -> dict[str, str]:
    """Return the files that stay, by their paths; those of a kind one after another."""
    top = PlainFolder(study.path)
    texts = {STUDY_MARK: top.read(STUDY_MARK).decode()}
    for name in _OF_STUDY:
        place = top.enter(name)
        for file in place.list_names():
            if _PATH.fullmatch(f"{name}/{file}"):  # what a killed worker left is not
                texts[f"{name}/{file}"] = place.read(file).decode()
    cells = top.enter("cells")
    for file in _OF_RUN:
        for cell in cells.list_names():
            run = cells.enter(cell)
            if run.has(file):
                texts[f"cells/{cell}/{file}"] = run.read(file).decode()
    return texts


@contextlib.contextmanager
def open_entry(entry: str | Path) -> Iterator[Path]:
    """Yield the folder of an entry; of a packed one a temporary folder, without its splits.

    FileFault for a file that is no packed entry. One that is raised meanwhile names the entry.
    """
    if not is_packed(entry):
        yield Path(entry)
        return
    texts = _read_packed(Path(entry))
    with tempfile.TemporaryDirectory(prefix="fltrain-entry-") as folder:
        for path, text in texts.items():
            place = Path(folder) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())
        if not is_study(folder):
            raise FileFault(f"{entry} holds no study: there is no {STUDY_MARK} in it")
        try:
            yield Path(folder)
        except FileFault as error:
            raise FileFault(str(error).replace(folder, str(entry))) from error


def _read_packed(file: Path) -> dict[str, str]:
    """Return the texts of a packed entry by their paths. FileFault where it is none."""
    try:
        texts = read_json_file(file)
    except FileFault:
        raise
    except (ValueError, RecursionError) as error:
        raise FileFault(f"{file} is no packed entry: {error}") from error
    if not isinstance(texts, Mapping) or len(texts) > _MOST:
        raise FileFault(f"{file} is no packed entry: it must be a mapping of up to {_MOST:,} files")
    for path, text in texts.items():
        if not _PATH.fullmatch(path) or not isinstance(text, str):
            raise FileFault(f"{file} holds {path!r:.80}, which is no file of a packed entry")
        if not _is_unicode(text):
            raise FileFault(f"{file} holds {path}, which is no text: half a pair of surrogates")
    return dict(texts)


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written; JSON may escape half a character."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def supply_splits(study: StudyFolder, splits: Mapping[str, "niidpart.FederatedSplit"]) -> None:
    """Write splits into the folder of a packed entry: the study's, and the copies of its runs."""
    study.write_splits(splits)
    cells = Roster(study).list_cells()
    for name in study.places.list_done() & set(cells):
        digest = cells[name].split
        if digest in splits:
            copy = study.places.find_cell(name) / SPLIT
            copy.write_bytes(study.find_split(digest).read_bytes())
