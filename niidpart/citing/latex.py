"""Text of a user's or of a file, as LaTeX and BibTeX take it."""

import re
from string import printable

_SPELT = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "{": r"\textbraceleft{}",  # BibTeX counts those behind a backslash too
    "}": r"\textbraceright{}",
    **{sign: f"\\{sign}" for sign in "#$%&_"},
    "<": r"\textless{}",  # LaTeX's first font has other signs in the places of these three
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_PLAIN = frozenset(printable) - frozenset("\t\n\r\x0b\x0c")
_DASH = re.compile("-(?=-)")  # two of them would be printed as one long dash


def spell_latex(text: str) -> str:
    """Return ASCII that LaTeX prints as the text; other letters as python escapes them."""
    spelt = "".join(_SPELT.get(sign, sign) for sign in _escape(text))
    return _DASH.sub("-{}", spelt)


def spell_comment(text: str) -> str:
    """Return ASCII that may stand outside of entries, where BibTeX takes @ for the next one."""
    return _escape(text).replace("@", "(at)")


def _escape(text: str) -> str:
    return "".join(sign if sign in _PLAIN else ascii(sign)[1:-1] for sign in text)
