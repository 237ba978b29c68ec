"""What speakers say: windows of letters and the letter that follows, of LEAF's JSON or of plays."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...arithmetic.rng import Ints
from ...arithmetic.words import Array
from ...errors import FileFault
from ..rows import Features, resolve_rows
from .budget import Budget
from .files import open_packed, read_whole
from .json_file import read_json_file

# LEAF's 80 letters in its order; the last one, which no text has, stands for all others.
LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
WINDOW = 80  # letters that are seen
_OTHER = len(LETTERS) - 1
_SHOWN = 100  # characters of an error's text

# A line with a name alone, behind an empty one: "HAMLET.", "Ber." or "THESEUS".
_WORD = r"[A-Z][A-Za-z'-]*"
_NAME = re.compile(rf"(?m)^\n([A-Z][A-Z' -]+|{_WORD}(?: (?:{_WORD}|of|the|and))*\.)$\n")
_NO_NAMES = (
    *("act", "alarum", "curtain", "dramatis", "enter", "exeunt", "exit", "finis"),
    *("persons", "scene"),
)
_BRACKETS = re.compile(r"\[[^\]]*\]")  # what is to be done on the stage


class Speeches(NamedTuple):
    """Windows of all speakers: letters [T] uint8, the place of each window [N], speakers [N].

    The letter behind a window is its label.
    """

    letters: Array
    starts: Ints
    speakers: Array

    @property
    def labels(self) -> Ints:
        """[N] the letter that follows each window."""
        following: Ints = self.letters[self.starts + WINDOW].astype(np.int64)
        return following

    def make_features(self) -> Features:
        """Return the features of the windows: the number of each letter, [n, 80] float32."""

        def read_features(rows: Ints | slice) -> Array:
            asked = self.starts[resolve_rows(rows, len(self.starts))]
            seen = asked[:, None] + np.arange(WINDOW)  # [n, 80] places
            windows: Array = self.letters[seen].astype(np.float32)
            return windows

        return read_features


def number_letters(text: str) -> Array:
    """Return [n] uint8 the place of each letter among LEAF's."""
    numbers = np.full(256, _OTHER, np.uint8)
    for place, letter in enumerate(LETTERS):
        numbers[ord(letter)] = place
    stored = np.frombuffer(text.encode("latin-1", "replace"), np.uint8)
    numbered: Array = numbers[stored]
    return numbered


def read_leaf_speeches(paths: Sequence[Path]) -> Speeches:
    """Return the windows of LEAF's files; one file at a time is in memory as text.

    A file holds `users`, and `user_data` with `x` (texts of 80 letters) and `y` (a letter each).
    """
    rows: list[Array] = []
    speakers: list[str] = []
    for path in paths:
        for speaker, texts in _list_windows(path):
            rows.append(number_letters("".join(texts)))
            speakers += [speaker] * len(texts)
        Budget.of_files(paths).require(sum(map(len, rows)), "the windows of its folder")
    letters = np.concatenate(rows) if rows else np.zeros(0, np.uint8)
    starts = np.arange(len(speakers), dtype=np.int64) * (WINDOW + 1)
    return Speeches(letters, starts, np.array(speakers, object))


def _list_windows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each speaker of a file, and 81 letters of each window: those seen, and the next."""
    try:
        held = read_json_file(path)
        for speaker in held["users"]:
            own = held["user_data"][speaker]
            yield (
                str(speaker),
                [_join_window(x, y) for x, y in zip(own["x"], own["y"], strict=True)],
            )
    except FileFault:
        raise
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"{type(error).__name__}: {str(error)[:_SHOWN]}"
        raise FileFault(f"{path} is no JSON of LEAF's Shakespeare ({reason})") from error


def _join_window(seen: Any, following: Any) -> str:
    are_texts = isinstance(seen, str) and isinstance(following, str)
    if not are_texts or len(seen) != WINDOW or len(following) != 1:
        raise ValueError(f"{WINDOW} letters and the one behind them are needed")
    return str(seen + following)


def read_plays(paths: Sequence[Path]) -> Speeches:
    """Return the windows of plays, of each speaker of each: PLAY_SPEAKER, as LEAF calls them.

    Those who have fewer than 81 letters in a play are left out.
    """
    said: dict[str, Array] = {}
    for path in paths:
        play = path.name.partition("_gut")[0].upper()
        for speaker, text in _part_play(path).items():
            if len(text) > WINDOW:
                said[f"{play}_{speaker}"] = number_letters(text)
    return _slide(said)


def _part_play(path: Path) -> Mapping[str, str]:
    """Return what each speaker says in a play, all speeches as one text."""
    budget = Budget.of_files([path])
    with open_packed(path) as file:
        text = read_whole(file, budget.room).decode("latin-1").replace("\r\n", "\n")
    # What stands before the first name, then name and speech in turn.
    _, *parts = _NAME.split(_BRACKETS.sub("", text))
    speeches: dict[str, list[str]] = {}
    for name, speech in zip(parts[::2], parts[1::2], strict=True):
        if not name.lower().startswith(_NO_NAMES):
            speaker = name.rstrip(". ").upper().replace(" ", "_")
            speeches.setdefault(speaker, []).append(speech.strip())
    if not speeches:
        raise FileFault(f"{path} has no speakers: a line NAME. behind an empty one is needed")
    return {name: "\n".join(own) for name, own in speeches.items()}


def _slide(said: Mapping[str, Array]) -> Speeches:
    """Return every window of each text; none reaches into the text of another."""
    starts, place = [], 0
    for text in said.values():
        end = place + len(text)
        starts.append(np.arange(place, end - WINDOW, dtype=np.int64))
        place = end
    texts, names = list(said.values()), np.array(list(said), object)
    sizes = [len(own) for own in starts]
    return Speeches(
        letters=np.concatenate(texts),
        starts=np.concatenate(starts),
        speakers=np.repeat(names, sizes),
    )
