r"""A table put into a LaTeX file of the user's own, between two marks.

```latex
%% begin fltrain table: main
%% end fltrain table: main
```

All that stands between them is replaced, and nothing else: the file is read and written as bytes.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from niidpart.errors import FileFault, UsageError
from niidpart.files import write_whole

__all__ = ["put_table"]

# Two signs of a comment: what a table says above itself has one, so no name in it is a mark.
_MARK = re.compile(rb"[ \t]*%%[ \t]*(begin|end) fltrain table:[ \t]*(.*?)[ \t]*[\r\n]*")
_COMMANDS = re.compile(rb"\\(documentclass|documentstyle|begin|input|include|usepackage)\b")
_COMMENT = re.compile(rb"(?<!\\)%[^\r\n]*")
_CLASS = re.compile(rb"\\documentclass\b")
_BOOKTABS = re.compile(
    rb"\\(usepackage|RequirePackage)\s*(\[[^\]]*\])?\s*\{([^}]*,)?\s*booktabs\s*(,[^}]*)?\}"
)
_ELSEWHERE = re.compile(rb"\\(input|include|import|subimport)\b")  # a preamble in another file
_OTHER_LETTERS = re.compile(rb"\\usepackage\s*\[(?!utf8)[^\]]*\]\s*\{inputenc\}")
_BEGINNINGS = {
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a zip archive, as .docx and .odt are",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": "a text in UTF-16",
    b"\xfe\xff": "a text in UTF-16",
}
_SHOWN = 40  # signs of a file that is no LaTeX


class _Mark(NamedTuple):
    """A mark, and where its line begins and ends in the file. line: counted from 1."""

    kind: str
    name: str
    start: int
    end: int
    line: int


def put_table(path: str | Path, name: str, table: str) -> bool:
    r"""Put a table between its marks in a LaTeX file, whole or not at all.

    Encoding and ends of lines stay those of the file.

    Parameters
    ----------
    path : str or Path
    name : str
        What its marks are called: a file may have several tables.
    table : str
        Lines of LaTeX.

    Returns
    -------
    bool
        Whether anything changed; what stands there already is not written again.

    Raises
    ------
    UsageError
        There is no such file, the name is none, or the file has not the letters of the table.
    FileFault
        The file is no LaTeX, has not both marks once and in order, or does not load booktabs.

    Examples
    --------
    >>> from pathlib import Path
    >>> written = Path("part.tex").write_text(
    ...     "%% begin fltrain table: main\n%% end fltrain table: main\n"
    ... )
    >>> put_table("part.tex", "main", "a & b"), put_table("part.tex", "main", "a & b")
    (True, False)
    >>> print(Path("part.tex").read_text(), end="")
    %% begin fltrain table: main
    a & b
    %% end fltrain table: main
    """
    path = Path(path)
    _require_name(name)
    old = _read_latex(path, name)
    first, last = _find_marks(old, name, path)
    _require_booktabs(old, path)
    line_end = _find_line_end(old, first)
    text = _encode(f"{table}\n", old, path)
    inside = text.replace(b"\n", line_end)
    before = old[: first.end]
    after = old[last.start :]
    new = before + inside + after
    if new == old:
        return False
    write_whole(path, new)
    return True


def _require_name(name: str) -> None:
    """Raise UsageError for a name that no line of a mark can have."""
    words = name.split()
    is_one_line = name.isprintable() and name == " ".join(words)
    if not words or not is_one_line:
        raise UsageError(
            f"a table's marks are called {name!r}; give a name in one line, such as --mark main"
        )


def _write_marks(name: str) -> str:
    """Return the two lines that somebody pastes."""
    return f"%% begin fltrain table: {name}\n%% end fltrain table: {name}"


def _read_latex(path: Path, name: str) -> bytes:
    """Return what a LaTeX file holds. UsageError where there is none, FileFault for another."""
    advice = f"the table goes into a LaTeX file that has its two marks:\n{_write_marks(name)}"
    if not path.exists():
        raise UsageError(f"{path} is not there; {advice}")
    if not path.is_file():
        raise FileFault(f"{path} is no regular file; {advice}")
    data = path.read_bytes()
    stranger = _describe_stranger(data)
    if stranger:
        raise FileFault(f"{path} is no LaTeX but {stranger}; {advice}")
    return data


def _describe_stranger(data: bytes) -> str:
    r"""Return what a file is that is no LaTeX; "" for LaTeX: it has marks, or \begin and such."""
    for beginning, kind in _BEGINNINGS.items():
        if data.startswith(beginning):
            return kind
    if not data.strip():
        return "an empty file"
    if b"\0" in data:
        return f"a binary file, which begins with {data[:8]!r}"
    if _COMMANDS.search(data) or _list_marks(data):
        return ""
    text = data.decode(errors="replace")
    begins = text.lstrip()[:_SHOWN]
    return rf"a text without \documentclass, \begin or marks, which begins with {begins!r}"


def _list_marks(data: bytes) -> list[_Mark]:
    """Return the marks of all tables, in their order."""
    marks = []
    start = 0
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        end = start + len(line)
        found = _MARK.fullmatch(line)
        if found is not None:
            kind, name = (part.decode(errors="replace") for part in found.groups())
            marks.append(_Mark(kind, name, start, end, number))
        start = end
    return marks


def _find_marks(data: bytes, name: str, path: Path) -> tuple[_Mark, _Mark]:
    """Return both marks of a table. FileFault unless each is there once, in their order."""
    marks = _list_marks(data)
    own = [mark for mark in marks if mark.name == name]
    if not own:
        others = sorted({mark.name for mark in marks})
        known = f" (it has marks of: {', '.join(others)})" if others else ""
        raise FileFault(
            f"{path} has no marks of the table {name!r}{known}; paste these two lines where it is "
            f"to stand:\n{_write_marks(name)}"
        )
    where = ", ".join(f"{mark.kind} in line {mark.line}" for mark in own)
    has = f"{path} has of the marks of the table {name!r}: {where}"
    if len(own) == 1:
        raise FileFault(f"{has}; both are needed:\n{_write_marks(name)}")
    if len(own) > 2:
        raise FileFault(f"{has}; leave one pair, or give each table a name of its own by --mark")
    first, last = own
    if (first.kind, last.kind) != ("begin", "end"):
        raise FileFault(f"{has}; the one that begins comes first, the one that ends second")
    _require_own_place(marks, first, last, path)
    return first, last


def _require_own_place(marks: Sequence[_Mark], first: _Mark, last: _Mark, path: Path) -> None:
    """Raise FileFault where marks of another table would be replaced with this one."""
    for mark in marks:
        if first.line < mark.line < last.line:
            raise FileFault(
                f"{path} has a mark of the table {mark.name!r} in line {mark.line}, between those "
                f"of {first.name!r} in lines {first.line} and {last.line}, whose place is all that "
                "lies between; move it out"
            )


def _require_booktabs(data: bytes, path: Path) -> None:
    r"""Raise FileFault where a whole document does not load what the rules of a table are of.

    A part of a document has no class, and a preamble may stand in another file.
    """
    code = _COMMENT.sub(b"", data)
    preamble, _, _ = code.partition(rb"\begin{document}")
    if not _CLASS.search(preamble):
        return
    if _BOOKTABS.search(preamble) or _ELSEWHERE.search(preamble):
        return
    raise FileFault(
        f"{path} does not load booktabs, of which the rules of the table are; add this line below "
        "\\documentclass:\n\\usepackage{booktabs}"
    )


def _find_line_end(data: bytes, mark: _Mark) -> bytes:
    """Return what ends the line of a mark, and so the lines of the table."""
    line = data[mark.start : mark.end]
    plain = line.rstrip(b"\r\n")
    return line.removeprefix(plain)


def _encode(text: str, data: bytes, path: Path) -> bytes:
    """Return a text in the encoding of a file: UTF-8, or of any other one what is ASCII."""
    encoding = "utf-8" if _is_utf8(data) else "ascii"
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        sign = text[error.start]
        raise UsageError(
            f"the table has {sign!r}, and {path} is not written in UTF-8; save it as UTF-8, or "
            "take names of ASCII letters"
        ) from error


def _is_utf8(data: bytes) -> bool:
    """Return whether a file is written in UTF-8, and does not tell LaTeX otherwise."""
    code = _COMMENT.sub(b"", data)
    if _OTHER_LETTERS.search(code):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
