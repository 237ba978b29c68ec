"""How many of what there are, in words."""


def count_noun(n: float, noun: str) -> str:
    """Return `1 party`, `1,000 parties`, `0 rows`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"
