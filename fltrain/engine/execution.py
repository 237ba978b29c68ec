"""How and where the jobs of a run train, once that is chosen."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

# What was found rather than asked for, and so is no setting.
OF_BUILD = ("build", "instructions", "library")


@dataclass(frozen=True)
class Execution:
    """How and where the jobs of a run train, as it was chosen before the first round.

    It is written down with the run, which resumes with it, to the same bits.

    Attributes
    ----------
    device : str
        "cpu" or "cuda".
    engine : str
        An executor's name.
    threads : int
        Of torch, on the CPU.
    workers : int or None
        Of the engines that have some, threads of `native`; None for as many as there are cores.
    memory : float or None
        GiB for the jobs that a stack holds; None for half of the device's.
    build : str or None
        Of `native`: the beginning of the sha256 of the compiled code. Two runs with the same one
        had the same code.
    instructions : str or None
        Of `native`: the instruction set that the code was made for, "baseline", "avx2" or "avx512".
    library : Path or None
        Of `native`: the file of the code, which is of this machine and stands in no config.json.

    Examples
    --------
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5, seed=0)
    >>> settings = {"model": "linear", "rounds": 1, "local_epochs": 1, "engine": "looped"}
    >>> run = fltrain.run(split, out="runs/fedavg", **settings)
    >>> fltrain.RunFolder.open("runs/fedavg").config["execution"]["engine"]
    'looped'
    """

    device: str = "cpu"
    engine: str = "looped"
    threads: int = 1
    workers: int | None = None
    memory: float | None = None
    build: str | None = None
    instructions: str | None = None
    library: Path | None = field(default=None, compare=False, repr=False)

    def describe(self) -> dict[str, Any]:
        """Return what config.json says: of what `native` alone has, only where that runs.

        Returns
        -------
        dict
        """
        values = asdict(replace(self, library=None))
        for name in OF_BUILD:
            if values[name] is None:
                del values[name]
        return values
