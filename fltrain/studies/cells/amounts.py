"""Bytes and seconds in words, for whoever reads an estimate. Needs no torch."""


def describe_bytes(n: float) -> str:
    """Return `1.2 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} TB"


def describe_seconds(seconds: float) -> str:
    """Return `3.5 h`."""
    for unit, length in (("s", 60.0), ("min", 60.0), ("h", 24.0)):
        if seconds < length * 1.5:
            return f"{seconds:.2g} {unit}"
        seconds /= length
    return f"{seconds:.2g} days"
