"""Reads a file that comes from elsewhere in a child process with limits of memory and time; only values and JSON come back (rules 5 to 7).

The HDF5 library parses in the child, which decodes as little as it is asked for; this process holds what comes to every rule again. The child
can open no further file and write none, but that is a limit and no jail: it runs as the same user.

    child -> parent   frames: 8 bytes of length, then a JSON object; or, where one said so, as many bytes of values
    parent -> child   lines: name start stop
"""

import contextlib
import json
import os
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from ..errors import UsageError
from ..splits.recipe import JSON
from .faults import Refused, SplitError, refuse
from .guard import as_split_error, open_here, require_plausible
from .layout import KNOWN
from .limits import UNTRUSTED_MEMORY, UNTRUSTED_TIME
from .stored import Array, Content, declared_bytes

_LENGTH = struct.Struct("<Q")
_MAX_FRAME = 1 << 20  # of JSON
NO_MEMORY = 77  # exit code
_ROOM = 64 << 20  # bytes that the libraries take for themselves
_TYPE = re.compile(r"(<[iuf][248]|\|[iu]1|\|S[1-9][0-9]{0,2})\Z")
_START = "import json, sys; sys.path += json.loads(sys.argv[1]); from niidpart.splitfile.sandbox import serve; serve(*sys.argv[2:])"


@contextlib.contextmanager
def open_in_child(
    path: str | Path, *, max_memory: int | None = None, timeout: float | None = None
) -> Iterator[Content]:
    """As `guard.open_here`, with the HDF5 library in a child process. max_memory: bytes, of the arrays together, and of the child beside what
    python and its libraries take; timeout: seconds until the file has to be closed again."""
    memory, seconds = (
        UNTRUSTED_MEMORY if max_memory is None else max_memory,
        UNTRUSTED_TIME if timeout is None else timeout,
    )
    if memory < 1 or not seconds > 0:
        raise UsageError(
            f"max_memory is {memory} bytes and timeout {seconds} seconds; both must be above 0"
        )
    with as_split_error(path) as there:
        require_plausible(there)
        child = Child(there, memory, seconds)
        try:
            arrays = child.arrays()
            if (declared := sum(map(declared_bytes, arrays.values()))) > memory:
                refuse(
                    5,
                    f"its arrays have {declared} bytes, max_memory is {memory}; allow more if you know the file",
                )
            yield Content(arrays, own=False)
        finally:
            child.end()


class Child:
    """The process that parses one file."""

    def __init__(self, path: Path, memory: int, seconds: float):
        self.memory, self.seconds = memory, seconds
        self.deadline = time.monotonic() + seconds
        places = json.dumps([p for p in sys.path if p])
        quiet = {
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "HDF5_PLUGIN_PRELOAD": "::",
        }  # no threads, no plugins
        command = [
            sys.executable,
            "-P",
            "-c",
            _START,
            places,
            os.path.abspath(path),
            str(memory),
            str(seconds),
        ]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | quiet,
        )

    def arrays(self) -> dict[str, "Remote"]:
        """What the file holds, as the child says."""
        found, said = {}, self.say()
        try:
            for name, kind, shape, block in said["arrays"]:
                whole = all(type(n) is int for n in (*shape, block))
                if (
                    not whole
                    or not KNOWN.match(name)
                    or not _TYPE.match(kind)
                    or len(shape) not in (1, 2)
                    or min(shape) < 0
                    or block < 1
                ):
                    raise UsageError(name)
                found[name] = Remote(self, name, tuple(shape), np.dtype(kind), block)
        except (ValueError, TypeError, KeyError) as error:
            raise _nonsense() from error
        return found

    def rows(self, array: "Remote", start: int, stop: int) -> Array:
        out = np.empty((stop - start, *array.shape[1:]), array.dtype)
        self.ask(f"{array.name} {start} {stop}\n")
        said = self.say()
        if said.get("bytes") != out.nbytes:
            raise _nonsense()
        if out.nbytes:
            self._fill(out.reshape(-1).view(np.uint8).data)
        return out

    def ask(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            self._died()

    def say(self) -> JSON:
        """The next frame; where the child found a fault, raises it."""
        head = bytearray(_LENGTH.size)
        self._fill(memoryview(head))
        (length,) = _LENGTH.unpack(head)
        if length > _MAX_FRAME:
            raise _nonsense()
        body = bytearray(length)
        self._fill(memoryview(body))
        try:
            said: JSON = json.loads(body, parse_constant=_no_number)
            if type(said) is not dict:
                raise UsageError("no object")
            if "fault" not in said:
                return said
            rule, message = said["fault"]
            if type(rule) is not int or type(message) is not str:
                raise UsageError("no fault")
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise _nonsense() from error
        raise Refused(rule, "".join(c if c.isprintable() else "?" for c in message[:1000]))

    def _fill(self, target: memoryview) -> None:
        """Reads as many bytes as there is room for, or says what became of the child."""
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        while len(target):
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                refuse(
                    6,
                    f"reading it took more than {self.seconds:g} seconds; allow more (timeout=) if you know the file",
                )
            n = os.readv(pipe, [target[: 1 << 20]])
            if n == 0:
                self._died()
            target = target[n:]

    def _died(self) -> NoReturn:
        """Says of what. One that has closed its pipes and lives on is given a second, and no longer."""
        try:
            code = self.process.wait(timeout=max(0.0, min(1.0, self.deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            refuse(
                7,
                "the process that read it stopped answering; do not open this file with anything else",
            )
        if code == -signal.SIGXCPU:
            refuse(
                6,
                f"reading it took more than {self.seconds:g} seconds; allow more (timeout=) if you know the file",
            )
        if code in (NO_MEMORY, -signal.SIGKILL):
            refuse(
                5,
                f"reading it took more memory than {self.memory} bytes; allow more (max_memory=) if you know the file",
            )
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        refuse(
            7, f"the process that read it died ({how}); do not open this file with anything else"
        )

    def end(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        self.process.wait()


def _no_number(text: str) -> NoReturn:
    raise UsageError(text)


def _nonsense() -> Refused:
    return Refused(
        7,
        "the child process that reads it answers nonsense; do not open this file with anything else",
    )


class Remote:
    """An array that the child reads; see `stored.StoredArray`."""

    def __init__(
        self, child: Child, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], block: int
    ):
        self.child, self.name, self.shape, self.dtype, self.block = child, name, shape, dtype, block

    def rows(self, start: int, stop: int) -> Array:
        return self.child.rows(self, start, stop)


def serve(path: str, memory: str, seconds: str) -> None:
    """The child: opens the file under its limits, says what is in it, and hands over rows until nobody asks any more."""
    out, questions = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0))
    try:
        _limit(int(memory), int(float(seconds)) + 1)
        _answer(path, out, questions)
    except MemoryError:
        os._exit(NO_MEMORY)
    except BrokenPipeError:  # the reader has what it wanted
        os._exit(0)


def _limit(memory: int, seconds: int) -> None:
    free = os.dup(0)
    os.close(free)
    take_no_more(memory, seconds)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (free + 1, free + 1)
    )  # one file more, and that is the split


def take_no_more(memory: int, seconds: int) -> None:
    """Limits this process: bytes beside what it has, seconds of computing."""
    total = _address_space() + _ROOM + memory
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    with contextlib.suppress(ValueError):  # macOS knows no limit of addresses
        resource.setrlimit(resource.RLIMIT_AS, (total, total))


def _address_space() -> int:
    """Bytes of addresses that this process has, beside which the limit counts."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 1 << 30


def _answer(path: str, out: IO[bytes], questions: IO[str]) -> None:
    try:
        with open_here(path) as content:
            _say(
                out,
                {
                    "arrays": [
                        [name, a.dtype.str, a.shape, a.block] for name, a in content.arrays.items()
                    ]
                },
            )
            for line in questions:
                name, start, stop = line.split()
                rows = content.arrays[name].rows(int(start), int(stop))
                _say(out, {"bytes": rows.nbytes})
                if rows.nbytes:
                    out.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
                    out.flush()
    except SplitError as error:
        _say(out, {"fault": [error.faults[0].rule, error.faults[0].message]})


def _say(out: IO[bytes], value: JSON) -> None:
    body = json.dumps(value).encode()
    out.write(_LENGTH.pack(len(body)) + body)
    out.flush()
