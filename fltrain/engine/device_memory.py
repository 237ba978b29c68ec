"""The memory of a device: all of it, and what is free."""

from pathlib import Path

import torch

GIB = 1 << 30
_MEMINFO = Path("/proc/meminfo")


def total_memory(device: torch.device) -> float:
    """Return the bytes of the device's memory; inf where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return _read_meminfo("MemTotal")


def free_memory(device: torch.device) -> float:
    """Return the bytes that can still be had on the device; inf where the system does not say.

    On a GPU those that torch holds and does not use are among them.
    """
    if device.type != "cuda":
        return _read_meminfo("MemAvailable")
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def _read_meminfo(name: str) -> float:
    """Return one line of what Linux says of its memory, in bytes; inf on other systems."""
    lines = _MEMINFO.read_text().splitlines() if _MEMINFO.exists() else []
    for line in lines:
        if line.startswith(f"{name}:"):
            return 1024.0 * int(line.split()[1])
    return float("inf")
