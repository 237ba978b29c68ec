"""What trains, imported without the searches of Python's collector."""

import gc
import importlib
import sys


def load_training() -> None:
    """Import all that a run needs, torch with it, and leave it out of the collector's searches.

    Modules are no garbage, and torch is a hundred thousand objects: to go through them takes a
    tenth of a second each time, while they are loaded and whenever a run has made as many again.
    Nothing is left out where torch was there before, which a program of somebody's own has loaded.
    """
    if "torch" in sys.modules or not gc.isenabled():
        return
    gc.disable()
    try:
        importlib.import_module("fltrain.runs.resuming")  # and all below it
    finally:
        gc.freeze()
        gc.enable()
