"""That a worker is to end: a signal asks for it, or its time is up."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Stopping:
    """That a worker is to end: asked for by a signal, or since its time is up.

    limit: seconds from now on, None for no limit. signal: the one that asked; 0 for none.
    """

    limit: float | None = None
    signal: int = 0
    _began: float = field(default_factory=time.monotonic)

    @property
    def is_due(self) -> bool:
        """Whether the worker is to end."""
        is_over = self.limit is not None and time.monotonic() - self._began >= self.limit
        return bool(self.signal) or is_over

    @contextlib.contextmanager
    def hear_signals(self) -> Iterator[None]:
        """Take SIGTERM and SIGINT as a wish to end; a second SIGINT, a person's, ends at once.

        A scheduler may send SIGTERM several times, by way of several processes.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def hear(number: int, _: Any) -> None:
            if self.signal and number == signal.SIGINT:
                raise KeyboardInterrupt
            self.signal = number

        before = {one: signal.signal(one, hear) for one in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
