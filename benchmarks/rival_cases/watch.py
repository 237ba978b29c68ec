"""Runs a command and says what it took: seconds, CPU seconds and memory of all its processes."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from process_tree import cpu_seconds, family, memory

from . import Reading

__all__ = ["Failed", "Taken", "watch"]

PAUSE = 0.2


class Failed(Exception):
    """A command that ended badly, or was stopped."""


@dataclass
class Lines:
    """What a program printed, line by line, and when. A progress bar's turns are lines too."""

    stamps: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def read(self, stream: IO[str]) -> None:
        for line in stream:
            now = time.perf_counter()
            for text in line.rstrip("\n").split("\r"):
                self.stamps.append(now)
                self.texts.append(text)

    def find(self, pattern: str) -> list[tuple[float, re.Match[str]]]:
        """Give (when, match) of each line in which the pattern is."""
        pairs = zip(self.stamps, self.texts, strict=True)
        return [(when, found) for when, text in pairs if (found := re.search(pattern, text))]


@dataclass(frozen=True)
class Taken:
    """rounds: how many ended. accuracy: a share; None where none was printed."""

    rounds: int
    seconds_of_rounds: float
    seconds: float
    cpu_seconds: float
    megabytes: float
    accuracy: float | None


def watch(
    command: tuple[str, ...],
    folder: Path,
    environment: dict[str, str],
    reading: Reading,
    limit: float,
) -> Taken:
    """Run the command to its end; Failed if it fails or takes longer than the limit."""
    began, lines, peak, cpu = time.perf_counter(), Lines(), 0, 0.0
    with subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | environment | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        reader = threading.Thread(target=lines.read, args=(child.stdout,))
        reader.start()
        while child.poll() is None:
            peak, cpu = max(peak, memory(child.pid)), max(cpu, cpu_seconds(child.pid))
            if time.perf_counter() - began > limit:
                _end(child)
                reader.join()
                raise Failed(f"stopped after {limit:.0f} s")
            time.sleep(PAUSE)
        seconds = time.perf_counter() - began
        reader.join()
    if child.returncode:
        raise Failed(_last_words(lines))
    rounds, of_rounds = _measure_rounds(lines, reading, began)
    return Taken(
        rounds=rounds,
        seconds_of_rounds=of_rounds,
        seconds=seconds,
        cpu_seconds=cpu,
        megabytes=peak / 1e6,
        accuracy=_find_accuracy(lines, reading),
    )


def _end(child: subprocess.Popen[str]) -> None:
    for pid in family(child.pid):
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.kill(pid, signal.SIGKILL)
    child.wait()


def _last_words(lines: Lines) -> str:
    said = [text.strip() for text in lines.texts if text.strip()]
    return (said[-1] if said else "no reason given")[:160].replace("|", "/")


def _measure_rounds(lines: Lines, reading: Reading, started: float) -> tuple[int, float]:
    """Return (how many rounds ended, the seconds from the first one's beginning)."""
    ended = [when for when, _ in lines.find(reading.ended)]
    if not ended:
        raise Failed(f"no line says that a round ended: {_last_words(lines)}")
    if reading.seconds:
        own = lines.find(reading.seconds)
        return len(ended), float(own[-1][1][1])
    begun = [when for when, _ in lines.find(reading.began) if when <= ended[0]]
    return len(ended), ended[-1] - max([started, *begun])


def _find_accuracy(lines: Lines, reading: Reading) -> float | None:
    found = lines.find(reading.accuracy)
    if not found:
        return None
    value = float(found[-1][1][1])
    return value / 100 if reading.percent else value
