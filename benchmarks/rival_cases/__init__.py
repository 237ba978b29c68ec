"""The rivals' own benchmarks: what each needs, how it is started, and ours on the same work.

A module of its own for each. benchmarks/rivals.py runs them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Case", "Place", "Reading", "Side"]


@dataclass(frozen=True)
class Reading:
    """What is looked for in a program's lines, as regular expressions.

    ended: the end of a round. began: the last line before the first round; without it the rounds
    begin with the program. seconds: the program's own seconds of all rounds, which are then
    believed. accuracy: the last one counts, a share or (percent) hundredths.
    """

    ended: str
    accuracy: str
    began: str = ""
    seconds: str = ""
    percent: bool = False


@dataclass(frozen=True)
class Side:
    """A program that trains.

    steps: commands that go before it, in the folder preparing (or its own), and are not measured.
    links: (what is there, where the program looks for it).
    """

    name: str
    command: tuple[str, ...]
    folder: Path
    reading: Reading
    steps: tuple[tuple[str, ...], ...] = ()
    preparing: Path | None = None
    links: tuple[tuple[Path, Path], ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where a case runs: python of the rival, its checkout, the data laid out, a folder for it."""

    python: Path
    checkout: Path
    data: Path
    folder: Path
    cores: int
    small: bool

    def launch(self, script: Path, *arguments: object) -> tuple[str, ...]:
        """Return the command that runs a script of the rival, unchanged."""
        words = (self.python, Path(__file__).with_name("launch.py"), script, *arguments)
        return tuple(map(str, words))


@dataclass(frozen=True)
class Case:
    """A rival's benchmark. work: what is trained; differs: what the rival does otherwise.

    packages: what the rival's environment has besides torch. split and run: the options of our `niidpart make` and `fltrain run`, given whether the
    scale is small.
    """

    name: str
    repository: str
    commit: str
    python: str
    packages: tuple[str, ...]
    work: str
    differs: str
    sides: Callable[[Place], list[Side]]
    split: Callable[[bool], str]
    run: Callable[[bool], str]
    engines: tuple[str, ...] = ("auto", "processes")
