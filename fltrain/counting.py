"""Whole numbers, counted. Needs no torch."""


def ceil_div(n: int, size: int) -> int:
    """Return n / size rounded up: how many pieces of that size n things fill.

    In whole numbers, so that it is exact for any n.

    Examples
    --------
    >>> ceil_div(7, 3), ceil_div(6, 3)
    (3, 2)
    """
    return (n + size - 1) // size
