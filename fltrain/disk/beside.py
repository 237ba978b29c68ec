"""A thread that writes while the rest of the process goes on."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor


@contextlib.contextmanager
def open_writing_thread() -> Iterator[ThreadPoolExecutor]:
    """Yield a thread that does one thing after another. When the block is over, all is done.

    Also where Ctrl-C is pressed once more meanwhile: who gives up the lock of a folder may leave
    nobody behind that writes in it.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="writing")
    try:
        yield thread
    finally:
        _wait_for_all(thread)


def _wait_for_all(thread: ThreadPoolExecutor) -> None:
    interrupt: KeyboardInterrupt | None = None
    is_done = False
    while not is_done:
        try:
            thread.shutdown()
            is_done = True
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
