"""Nodes of a cluster on this machine, each with process numbers of its own, so that it can be lost at once."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

SHOWN = 40  # lines of a log
HANG = 1800.0  # seconds after which something hangs, also on a machine with ten times the work


def why_not_machines():
    """Why no nodes can be had here; "" where they can."""
    if os.geteuid() != 0:
        return "nodes of a cluster take root here, for process numbers of their own"
    if shutil.which("unshare") is None:
        return "there is no unshare (package util-linux)"
    return ""


class Machine:
    """A node: a daemon and all that it starts, which the system kills with it."""

    def __init__(self, command, *, env, log):
        self.command, self.env, self.log = command, env, log
        self.process = None

    def start(self):
        alone = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child=SIGKILL"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*alone, *self.command],
                env=os.environ | self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def lose(self):
        """End all processes of the node in one moment, as a power cut does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def running(*machines):
    for machine in machines:
        machine.start()
    try:
        yield
    finally:
        for machine in machines:
            machine.lose()


class EndedEarlier(Exception):
    """A study was over before all had happened to it that was to."""


def strike(attempt, rounds):
    """Return what attempt(rounds) does, with as many more rounds as its study takes to see it all.

    Under other load one worker has all cells before the second one is there, which is no fault.
    """
    for times in (1, 8, 64):
        try:
            return attempt(rounds * times)
        except EndedEarlier as error:
            said = error
    raise AssertionError(
        f"each study was over too early, also that of {rounds * times} rounds: {said}"
    )


def wait_until(is_so, what, seconds=HANG, logs=()):
    """Wait for what has to come; the seconds are for what never does, and then the logs are shown."""
    ends = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() >= ends:
            raise AssertionError("\n".join([f"never came: {what}", *map(read_tail, logs)]))
        time.sleep(0.2)


def wait_for_end(process, log, seconds=HANG):
    """The exit code of a process that ends; where it does not, a failure with the end of its log."""
    wait_until(lambda: process.poll() is not None, "the end of a command", seconds, [log])
    return process.returncode


def read_tail(log):
    """The last lines of a log, under its name."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else ["is not there"]
    return "\n".join([f"-- {log}", *lines[-SHOWN:]])
