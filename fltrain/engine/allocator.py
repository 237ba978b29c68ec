"""Freed memory stays with the process, where the C library is told so."""

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # names of mallopt's options in malloc.h
_LARGEST = (
    32 << 20
)  # the largest that every glibc takes; what is above, such as a data set, goes back to the system when it is freed
_KEPT = (1 << 31) - 1  # the largest int: the heap never shrinks
_STEP = 64 << 20  # bytes that the heap grows by


def keep_memory() -> bool:
    """Tells glibc to keep blocks up to 32 MiB that are freed, instead of giving them back and asking for them again in each step of training.

    Every page that comes from the system is cleared by it first, which takes a third of the time of small steps. For the whole process, for good; no
    result changes. False, and nothing is done, where the C library is another one.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):  # musl has a mallopt of no effect, or none
        return False
    taken = [
        libc.mallopt(option, value)
        for option, value in (
            (_MMAP_THRESHOLD, _LARGEST),
            (_TRIM_THRESHOLD, _KEPT),
            (_TOP_PAD, _STEP),
        )
    ]
    return all(taken)
