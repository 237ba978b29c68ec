"""What trains, imported without the searches of Python's collector."""

import gc
import importlib
import signal
import sys


def load_training() -> None:
    """Import all that a run needs, torch with it, and leave it out of the collector's searches.

    Modules are no garbage, and torch is a hundred thousand objects: to go through them takes a
    tenth of a second each time, while they are loaded and whenever a run has made as many again.
    Nothing is left out where torch was there before, which a program of somebody's own has loaded.
    SIGTERM waits meanwhile: a library may swallow what a handler raises within its import, and is
    then there by half.
    """
    if "torch" in sys.modules or not gc.isenabled():
        return
    gc.disable()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        importlib.import_module("fltrain.runs.resuming")  # and all below it
    finally:
        gc.freeze()
        gc.enable()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
