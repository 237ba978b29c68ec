"""Where jobs run, and how. Needs no torch."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

from niidpart.registry import Above

from .ranges import LARGEST, THREADS

# The engines that train jobs side by side, in chunks that fit a memory.
STACKING = ("stacked", "graph")


@dataclass(frozen=True)
class EngineSettings:
    """Where jobs run, and how."""

    device: Annotated[Literal["auto", "cpu", "cuda"], "Where to train."] = "auto"
    engine: Annotated[
        Literal["auto", "looped", "processes", "stacked", "graph", "native"],
        "How jobs run: one by one, in processes or compiled code (native) on CPU cores, stacked on "
        "a GPU, or stacked with its steps captured (graph; docs/training.md). auto tells.",
    ] = "auto"
    workers: Annotated[
        int | None,
        "Processes of --engine processes, threads of native; as many as there are cores if not "
        "given.",
        *THREADS,
    ] = None
    threads: Annotated[int | None, "CPU threads; torch's own number if not given.", *THREADS] = None
    memory: Annotated[
        float | None,
        "GiB that --engine stacked or graph may take for the jobs that run at once; half of the "
        "device's if not given.",
        Above(0),
        LARGEST,
    ] = None
    tf32: Annotated[bool, "CUDA: products in TF32, which is faster and rounds to 10 bits."] = False
    bf16: Annotated[
        bool,
        "Forward and backward passes in bfloat16 where torch's autocast allows; weights stay "
        "float32.",
    ] = False
    compile: Annotated[bool, "The model through torch.compile."] = False


class EngineSettingValues(TypedDict, total=False):
    """The same as keyword arguments."""

    device: Literal["auto", "cpu", "cuda"]
    engine: Literal["auto", "looped", "processes", "stacked", "graph", "native"]
    workers: int | None
    threads: int | None
    memory: float | None
    tf32: bool
    bf16: bool
    compile: bool
