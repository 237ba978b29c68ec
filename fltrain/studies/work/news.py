"""What is said by the way while a study is worked on."""

from collections.abc import Callable

OnNews = Callable[[str], None]


def ignore_news(_: str) -> None:
    """Hear nothing."""
