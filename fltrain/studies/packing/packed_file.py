"""The file of a packed study: a JSON mapping of path to text, packed by xz, and nothing else."""

import json
import lzma
import re
from collections.abc import Mapping
from pathlib import Path

from niidpart.data.readers.json_file import read_json_file
from niidpart.errors import FileFault, UsageError
from niidpart.files import write_whole

from ...runs.configuration import CONFIG
from ...runs.ending import DIVERGED
from ...runs.finding import STUDY_MARK
from ...runs.folder import ENVIRONMENT
from ...runs.metrics_log import METRICS
from ...runs.timing_log import TIMING

PACKED = ".json.xz"
_OF_STUDY = ("plans", "winners", "claims")
OF_RUN = (CONFIG, ENVIRONMENT, METRICS, TIMING, DIVERGED)
_NAME = r"[A-Za-z0-9_+-][A-Za-z0-9_+.-]{0,199}"  # no file system takes much longer ones
# Nothing but these is written, whoever made the file: no tensors, and no split but our own.
_PATH = re.compile(
    rf"{re.escape(STUDY_MARK)}|({'|'.join(_OF_STUDY)})/{_NAME}"
    rf"|cells/{_NAME}/({'|'.join(map(re.escape, OF_RUN))})"
)
_MOST = 100_000  # files of a study; one of 1,000 cells has some 8,000


def is_packed(path: str | Path) -> bool:
    """Return whether a path is that of a packed study, by its ending."""
    return str(path).endswith(PACKED) and Path(path).is_file()


def is_of_packed(path: str) -> bool:
    """Return whether a path in the folder of a study is one that a packed study holds."""
    return _PATH.fullmatch(path) is not None


def write_packed(texts: Mapping[str, str], out: Path) -> None:
    """Write texts by their paths as one file. UsageError for another ending."""
    if not str(out).endswith(PACKED):
        raise UsageError(f"{out} does not end in {PACKED}, by which a packed study is known")
    text = json.dumps(dict(texts), indent=0)
    write_whole(out, lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read_packed(file: Path) -> dict[str, str]:
    """Return the texts of a packed study by their paths. FileFault where it is none."""
    try:
        texts = read_json_file(file)
    except FileFault:
        raise
    except (ValueError, RecursionError) as error:
        raise FileFault(f"{file} is no packed study: {error}") from error
    if not isinstance(texts, Mapping) or len(texts) > _MOST:
        raise FileFault(f"{file} is no packed study: it must be a mapping of up to {_MOST:,} files")
    for path, text in texts.items():
        if not is_of_packed(path) or not isinstance(text, str):
            raise FileFault(f"{file} holds {path!r:.80}, which is no file of a packed study")
        if not _is_unicode(text):
            raise FileFault(f"{file} holds {path}, which is no text: half a pair of surrogates")
    if STUDY_MARK not in texts:
        raise FileFault(f"{file} holds no study: there is no {STUDY_MARK} in it")
    return dict(texts)


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written; JSON may escape half a character."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)
