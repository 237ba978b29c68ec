"""The sides of training.py: which there are, where their pythons are, and one measured in a process of its own."""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any, NamedTuple

from process_tree import family, memory

HERE = Path(__file__).parent
# This tree's own packages, whatever is installed where a side's python is.
_OWN_CODE = os.pathsep.join(map(str, [HERE, HERE.parent, HERE.parent / "cli"]))
TORCH = ["torch==2.13.0", "torchvision==0.28.0"]
PEERS = {
    "pfl": ["pfl==0.6.0"],
    "flwr": ["flwr[simulation]==1.41.0"],
    "fedlab": ["torchvision", "fedlab==1.3.0"],
}
OURS = ("looped", "processes", "native", "stacked")
SHAPES = {
    "looped": (1, 2),
    "processes": (2, 1),
    "native": (2, 1),
    "stacked": (1, 2),
    "plain": (1, 2),
    "pfl": (2, 1),
    "flwr": (2, 1),
    "fedlab": (1, 2),
}
SIDES = "looped,processes,native,plain@1x1,plain@1x2,pfl@1x1,pfl@2x1,flwr@2x1,fedlab@1x2"


class Side(NamedTuple):
    name: str
    processes: int
    threads: int

    @classmethod
    def of(cls, text: str) -> "Side":
        name, _, shape = text.partition("@")
        if name not in SHAPES:
            raise argparse.ArgumentTypeError(
                f"there is no side {name!r}; there are {', '.join(SHAPES)}"
            )
        try:
            processes, threads = map(int, shape.split("x")) if shape else SHAPES[name]
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no NAME@PROCESSESxTHREADS, such as plain@1x2"
            ) from None
        return cls(name, processes, threads)

    @property
    def cores(self) -> int:
        return self.processes * self.threads

    def __str__(self) -> str:
        return f"{self.name}@{self.processes}x{self.threads}"


def interpreter(name: str, envs: Path) -> Path:
    """The python that has the library of a side; its environment is made if it is not there. CalledProcessError if it cannot be."""
    if name not in PEERS:
        return Path(sys.executable)
    home = (envs / name).absolute()
    if not (home / "installed").exists():
        print(f"installing {' '.join(PEERS[name])} in {home}", file=sys.stderr, flush=True)
        venv.create(home, with_pip=True, clear=True)
        (home / "constraints.txt").write_text("\n".join(TORCH))
        for packages in (
            [TORCH[0]],
            PEERS[name],
        ):  # torch first: a peer's own wish for one must find it there
            command = [
                home / "bin/python",
                "-m",
                "pip",
                "install",
                "--quiet",
                "-c",
                home / "constraints.txt",
                *packages,
            ]
            subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
        (home / "installed").touch()
    return home / "bin/python"


def measure(side: Side, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """What the child wrote, with the peak of memory; {"error": reason} if it could not be installed, failed, or was stopped at the limit."""
    try:
        python = interpreter(side.name, arguments.envs)
    except subprocess.CalledProcessError as error:
        return {"error": f"not installed: {_last(error.stderr)}"}
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(side.threads)
    )
    quiet = {
        "FLWR_TELEMETRY_ENABLED": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "FLWR_HOME": str(folder / "flwr"),
    }
    peer, engine = ("ours", side.name) if side.name in OURS else (side.name, "-")
    out, said = folder / "out.json", folder / "said.txt"
    out.unlink(missing_ok=True)
    rounds = 2 if side.name == "stacked" else arguments.rounds
    command = [
        python,
        HERE / "training_child.py",
        peer,
        engine,
        folder,
        out,
        rounds,
        side.processes,
        side.threads,
        _port(),
    ]
    with said.open("w") as log:
        child = subprocess.Popen(
            list(map(str, command)),
            env=os.environ | threads | quiet | {"PYTHONPATH": _OWN_CODE},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        peak, late = _watched(child, arguments.limit)
    if late:
        return {"error": f"stopped after {arguments.limit:.0f} s"}
    if child.returncode or not out.exists():
        return {"error": _last(said.read_text(errors="replace"))}
    return json.loads(out.read_text()) | {"megabytes": peak / 1e6}


def _watched(child: subprocess.Popen, limit: float) -> tuple[int, bool]:
    """(the most memory that the child's family was seen with, whether it had to be stopped)."""
    peak, began = 0, time.monotonic()
    while child.poll() is None:
        peak = max(peak, memory(child.pid))
        if time.monotonic() - began > limit:
            for pid in family(child.pid):
                with contextlib.suppress(ProcessLookupError):  # ended meanwhile
                    os.kill(pid, signal.SIGKILL)
            child.wait()
            return peak, True
        time.sleep(0.5)
    return peak, False


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "no reason given")[:160].replace("|", "/")


def _port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
