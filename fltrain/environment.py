"""On what a run ran: enough to tell why two runs differ, nothing that names a person or a machine."""

import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import torch


def describe(device: torch.device, threads: int | None = None) -> dict[str, Any]:
    return {
        "niidpart": version("niidpart"),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "threads": threads or torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cuda": torch.version.cuda,
    }


def _cpu() -> str:
    """The processor's name; Linux tells it in /proc only."""
    info = Path("/proc/cpuinfo")
    names = (
        [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        if info.exists()
        else []
    )
    return names[0] if names else platform.processor()
