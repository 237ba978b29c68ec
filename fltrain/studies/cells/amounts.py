"""Bytes and seconds in words, for whoever reads an estimate. Needs no torch."""


def describe_bytes(n: float) -> str:
    """Return `1.2 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{_round_to(n, 3)} {unit}"
        n /= 1000
    return f"{_round_to(n, 3)} TB"


def describe_seconds(seconds: float) -> str:
    """Return `3.5 h`."""
    for unit, length in (("s", 60.0), ("min", 60.0), ("h", 24.0)):
        if seconds < length * 1.5:
            return f"{_round_to(seconds, 2)} {unit}"
        seconds /= length
    return f"{_round_to(seconds, 2)} days"


def _round_to(value: float, digits: int) -> str:
    """Return a number with so many digits that count, written out: 410, and no 4.1e+02."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"
