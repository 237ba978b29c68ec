"""Settings of how jobs run that exclude each other."""

from niidpart.errors import UsageError

from ..common import Common


def require_consistent(common: Common) -> None:
    """Raise UsageError for settings that exclude each other, or that the device does not have."""
    device, engine, workers = common.device, common.engine, common.workers
    if workers and engine in ("looped", "stacked"):
        raise UsageError(
            f"workers is {workers}, and engine {engine} has none; "
            "leave --workers out, or use processes or native"
        )
    if workers and engine == "auto" and common.threads not in (None, 1):
        raise UsageError(
            f"workers have one thread each, and threads is {common.threads}; "
            "leave out --workers or --threads"
        )
    if common.memory and engine not in ("auto", "stacked"):
        raise UsageError(
            f"memory is for engine stacked, the engine is {engine}; leave --memory out"
        )
    if engine == "stacked" and common.compile:
        raise UsageError(
            "engine stacked cannot take a model through torch.compile; "
            "leave --compile out, or use looped"
        )
    if common.tf32 and device != "cuda":
        raise UsageError(
            f"tf32 is of CUDA devices, the device is {device}; "
            "leave --tf32 out, or use --device cuda"
        )
