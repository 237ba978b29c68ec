"""How and where the jobs of a run train, once that is chosen."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Execution:
    """How and where the jobs of a run train, as it was chosen before the first round.

    It is written down with the run, which resumes with it, to the same bits.

    device: cpu or cuda. engine: an executor's name. threads: of torch, on the CPU. workers: of the
    engines that have some; None for as many as there are cores. memory: GiB for the jobs that a
    stack holds; None for half of the device's.
    """

    device: str = "cpu"
    engine: str = "looped"
    threads: int = 1
    workers: int | None = None
    memory: float | None = None
