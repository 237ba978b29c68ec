"""A process and all that it started, through Linux's /proc: CPU seconds and memory; and what the machine did beside."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def stat(pid: int) -> tuple[int, float] | None:
    """(parent, CPU seconds of the process and of its children that ended); None if it is gone."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        )  # its name may hold spaces
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(fields[1]), sum(map(int, fields[11:15])) / _TICK


def family(pid: int) -> dict[int, float]:
    """{process: CPU seconds} of `pid` and all that descend from it."""
    stats = {
        int(p.name): s
        for p in Path("/proc").iterdir()
        if p.name.isdigit() and (s := stat(int(p.name)))
    }
    children: dict[int, list[int]] = {}
    for child, (parent, _) in stats.items():
        children.setdefault(parent, []).append(child)
    found, waiting = {}, [pid]
    while waiting:
        one = waiting.pop()
        if one in stats:
            found[one] = stats[one][1]
            waiting += children.get(one, [])
    return found


def cpu_seconds(pid: int) -> float:
    return sum(family(pid).values())


def machine_seconds() -> float:
    """CPU seconds that the machine has given away since it started, those taken by a hypervisor included."""
    user, nice, system, _, _, irq, softirq, steal, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / _TICK


def memory(pid: int) -> int:
    """Bytes of the whole family now; a page that several share counts once (PSS)."""
    total = 0
    for one in family(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended in between, or is about to
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return total
