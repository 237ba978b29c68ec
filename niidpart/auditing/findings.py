"""`Finding`: one thing that an audit found."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..arithmetic.rng import Ints
from ..wording import count_noun

Level = Literal["fault", "note"]
_SHOWN = 5  # rows or parties that a text names


@dataclass(frozen=True)
class Finding:
    """One thing that an audit found.

    Parameters
    ----------
    kind : str
        What it is, for programs: "row-twice", "unheld", ...
    level : {"fault", "note"}
        A fault makes results wrong or incomparable; a note is worth knowing, and may be meant.
    text : str
        The same in words, with numbers.
    n : int
        How many: rows, parties, pairs.
    examples : tuple of int
        Some of the rows or parties.

    Examples
    --------
    >>> Finding("empty-party", "note", "1 of 3 parties holds nothing: 2", 1, (2,)).n
    1
    """

    kind: str
    level: Level
    text: str
    n: int
    examples: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return all fields, as JSON has them.

        Returns
        -------
        dict

        Examples
        --------
        >>> list(Finding("unheld", "note", "row 7 is nobody's", 1).to_json())
        ['kind', 'level', 'text', 'n', 'examples']
        """
        return asdict(self) | {"examples": list(self.examples)}


def describe_rows(rows: Ints, kind: str, level: Level, text: str, rest: str = "") -> Finding:
    """Return what is so of these rows: how many, the text behind that, some of them, the rest."""
    some, named = name_some(rows)
    said = f"{count_noun(len(rows), 'row')} {text}: {named}{rest}"
    return Finding(kind, level, said, len(rows), some)


def name_some(numbers: Ints) -> tuple[tuple[int, ...], str]:
    """Return the first of some numbers, and the same as "3, 4, 9, ..."."""
    some = tuple(numbers[:_SHOWN].tolist())
    more = ", ..." if len(numbers) > len(some) else ""
    return some, ", ".join(map(str, some)) + more
