"""On what a run ran: enough to tell why two runs differ, and nothing that names a person."""

import functools
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import torch


def describe(device: torch.device, threads: int | None = None) -> dict[str, Any]:
    """Return the versions and the machine, as environment.json holds them."""
    return {
        "niidpart": _find_version(),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _find_processor(),
        "threads": threads or torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cuda": torch.version.cuda,
    }


@functools.cache
def find_commit() -> str | None:
    """Return the commit of the sources, where they are a git checkout; None where they are not.

    It ends in "+changed" where a file of the packages is not as it was committed.
    """
    sources = Path(__file__).parent.parent
    if not (sources / ".git").exists():  # what is installed may lie in somebody's other repository
        return None
    words = ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--"]
    try:
        told = subprocess.run(
            [*words, "niidpart", "fltrain"], cwd=sources, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    commit, changed = "", ""
    for line in told.stdout.decode().splitlines():
        if line.startswith("# branch.oid "):
            commit = line.split()[-1]
        elif not line.startswith("#"):
            changed = "+changed"
    return commit + changed


@functools.cache
def _find_version() -> str:
    return version("niidpart")


@functools.cache
def _find_processor() -> str:
    """Return the processor's name; Linux says it in /proc alone."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
