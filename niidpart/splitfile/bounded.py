"""Work on what a file from elsewhere says, in a child process with limits of memory and time: what is to be derived is the file's choice.

The values come from this process, after every rule; the child computes with them and answers in JSON.
"""

import importlib
import json
import os
import pickle
import signal
import subprocess
import sys
from typing import Any

from .sandbox import NO_MEMORY, take_no_more

_START = "import json, sys; sys.path += json.loads(sys.argv[1]); from niidpart.splitfile.bounded import serve; serve(*sys.argv[2:])"


class Exceeded(Exception):
    """The work took more than it may, or its process died of it."""


def within(memory: int, seconds: float, module: str, function: str, *arguments: Any) -> Any:
    """What `niidpart.<module>.<function>(*arguments)` returns, which has to be JSON. arguments: values that can be pickled.

    memory: bytes beside what python, its libraries and the arguments take; seconds: for all of it. Exceeded, with words for the user.
    """
    late = Exceeded(
        f"deriving it again took more than {seconds:g} seconds; allow more (timeout=) if you know the file"
    )
    places = json.dumps([p for p in sys.path if p])
    command = [
        sys.executable,
        "-P",
        "-c",
        _START,
        places,
        str(memory),
        str(int(seconds) + 1),
        module,
        function,
    ]
    one_thread = {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }  # each thread would take addresses
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | one_thread,
    )
    with process:
        try:
            answer, _ = process.communicate(pickle.dumps(arguments), timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise late from error
        finally:
            process.kill()
    if process.returncode == -signal.SIGXCPU:
        raise late
    if process.returncode in (NO_MEMORY, -signal.SIGKILL):
        raise Exceeded(
            f"deriving it again took more memory than {memory} bytes; allow more (max_memory=) if you know the file"
        )
    if process.returncode:
        raise Exceeded(f"the process that derived it again died (exit code {process.returncode})")
    return json.loads(answer)


def serve(memory: str, seconds: str, module: str, function: str) -> None:
    """The child: takes its arguments, then its limits, and answers."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    work = getattr(importlib.import_module(f"niidpart.{module}"), function)
    importlib.import_module("niidpart.heterogeneity")  # libraries count for nothing
    arguments = pickle.load(sys.stdin.buffer)
    take_no_more(int(memory), int(seconds))
    try:
        out.write(json.dumps(work(*arguments)).encode())
        out.flush()
    except MemoryError:
        os._exit(NO_MEMORY)
