"""Commands that are ended from outside, by Ctrl-C or SIGTERM: what is said, and the exit code."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

_CTRL_C = "interrupted"


class Interrupted(KeyboardInterrupt):
    """The end of a command from outside. text: what is said of it. code: its exit code."""

    def __init__(self, text: str = _CTRL_C, code: int = 128 + signal.SIGINT):
        super().__init__(text)
        self.text = text
        self.code = code


@contextlib.contextmanager
def explain_interrupt(describe_kept: Callable[[], str]) -> Iterator[None]:
    """Say on Ctrl-C and SIGTERM what is kept of the work of the block, in one line.

    describe_kept: asked once the block is over.
    """
    try:
        with raise_sigterm():
            yield
    except KeyboardInterrupt as error:
        found = error if isinstance(error, Interrupted) else Interrupted()
        raise Interrupted(f"{found.text}: {describe_kept()}", found.code) from error


@contextlib.contextmanager
def raise_sigterm() -> Iterator[None]:
    """Raise SIGTERM as `Interrupted`, in the main thread, which alone is told of signals.

    Not under torchrun, whose ranks have a handler of their own.
    """
    is_alone = int(os.environ.get("WORLD_SIZE", "1")) < 2
    if not is_alone or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the first is answered, and takes a moment
        raise Interrupted("ended by SIGTERM", 128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
