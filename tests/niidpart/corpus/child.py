"""Run by test_hostile.py in a process with little memory: what each reader says of each bad file, and whether the canary was touched.

Arguments: the folder of bad files, the canary, a file to say at what it works. One JSON object on stdout:
{attack: {reader: [rules] or what else came}}, and for "": whether the watch on the canary works.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from pathlib import Path

import h5py

import niidpart

ROOM = 1 << 30  # bytes beside python and its libraries
WALL = 20  # seconds for one file and one reader; all but a few need milliseconds


class Watch:
    """Whether a file was opened, by whomever: Linux tells it."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.handle = libc.inotify_init1(os.O_NONBLOCK)
        assert libc.inotify_add_watch(self.handle, os.fsencode(path), 0x20) > 0, "IN_OPEN"

    def touched(self):
        try:
            return bool(os.read(self.handle, 1 << 16))
        except BlockingIOError:
            return False


def looked_through(path):
    """What can be had from a file that is only opened."""
    with niidpart.open(path) as split:
        for part in (split.train, split.val, split.test):
            _ = part.sizes
            for p in range(split.n_parties):
                part.party(p), part.party_counts(p)
            _ = part.counts
        _ = (
            list(split.columns.values()),
            list(split.draws.values()),
            split.skew,
            split.skew.map_beta,
        )


READERS = {
    "check": lambda path: niidpart.check(path),
    "read": lambda path: niidpart.read(path),
    "verify": lambda path: niidpart.verify(path).faults,
    "open": looked_through,
}


def said(reader, path):
    """The rules that a reader names; anything else is a text."""
    signal.alarm(WALL)  # kills this process, wherever it hangs; the parent knows at what it was
    try:
        faults = reader(path)
    except niidpart.SplitError as error:
        faults = error.faults
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return sorted({fault.rule for fault in faults}) if isinstance(faults, list) else "taken"


def main(folder, canary, at):
    watch = Watch(canary) if sys.platform == "linux" else None
    if watch:
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    result = {}
    for path in sorted(Path(folder).glob("*.h5")):
        Path(at).write_text(path.stem)
        result[path.stem] = {name: said(reader, path) for name, reader in READERS.items()}
        result[path.stem]["canary"] = bool(watch and watch.touched())
    with h5py.File(Path(folder) / "external_link.h5") as f:
        _ = f["draws/secret"]
    result[""] = watch.touched() if watch else None
    print(json.dumps(result))


main(*sys.argv[1:])
