"""Runs a command in a forked child, with one of its calls failing, and says what went wrong."""

import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from disk import Disk, History
from record import read_trace
from scenarios import NEW, OLD, Scenario
from shim import Action, Fault, Kind, Shim

_PATIENCE = 600.0  # seconds for a command, beside whatever else the machine does
_KILLED = -signal.SIGKILL


class Ended(NamedTuple):
    """How a child ended: its exit code (negative: the signal), and what it printed."""

    code: int
    said: str


class Finding(NamedTuple):
    """What was wrong at one fault."""

    scenario: str
    fault: str
    nth: int
    call: str
    problem: str
    said: str


class Bench:
    """The folders that trials take place in. root: the one that the command works in."""

    def __init__(self, base: Path, shim: Shim):
        self.base, self.shim = base, shim
        self.root = base / "work"
        self._said = base / "said"
        self._prepared: dict[str, Path] = {}

    def lay_out(self, scenario: Scenario) -> None:
        """Make the working folder what it is before the command."""
        template = self.base / f"template-{scenario.name}"
        if scenario.name not in self._prepared:
            (template / "tmp").mkdir(parents=True)
            self._prepared[scenario.name] = template
            self._run_there(template, scenario.prepare)
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(template, self.root, symlinks=True)
        self.shim.set_root(self.root / scenario.within)
        scenario.begin_trial()

    def _run_there(self, folder: Path, work: Callable[[], None]) -> None:
        ended = self.run(work, folder)
        if ended.code:
            raise RuntimeError(f"the scenario cannot be prepared: {ended}")

    def run(
        self, work: Callable[[], None], folder: Path | None = None, *, arm: bool = False
    ) -> Ended:
        """Run `work` in a child that stands in a folder."""
        child = os.fork()
        if not child:
            _become(work, folder or self.root, self._said, self.shim if arm else None)
        code = _wait(child)
        self.shim.disarm()
        return Ended(code, self._said.read_text(errors="replace"))

    def read_state(self, scenario: Scenario, said: str) -> str:
        """Return OLD, NEW, or what is wrong with what stands there after that was said."""

        def tell() -> None:
            print(json.dumps(scenario.read_state(said)))

        ended = self.run(tell)
        if ended.code:
            return f"it cannot be read: {ended.said[-600:]}"
        return str(json.loads(ended.said.splitlines()[-1]))

    def list_names(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")}


def _become(work: Callable[[], None], folder: Path, said: Path, shim: Shim | None) -> None:
    """Be the child: run `work` and end, whatever happens."""
    code = 70
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(folder)
        if shim is None:
            os.setpgid(0, 0)
        else:
            shim.arm()
        code = _call(work)
    finally:
        if shim is not None:
            shim.disarm()
        os._exit(code)


def _call(work: Callable[[], None]) -> int:
    try:
        work()
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _wait(child: int) -> int:
    """Return how a child ended; it and its own children are ended where that takes too long."""
    deadline, pause = time.monotonic() + _PATIENCE, 0.0005
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGALRM
        time.sleep(pause)
        pause = min(pause * 1.5, 0.01)
    code = os.waitstatus_to_exitcode(status)
    _end_group(child)
    return code


def _end_group(group: int) -> None:
    """End what a killed child left running, as the end of a session would."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


class Undisturbed(NamedTuple):
    """How a command goes without a fault.

    names_before, names_after: of the files. seen: its calls by kind.
    """

    names_before: set[str]
    names_after: set[str]
    seen: dict[Kind, int]
    history: History


class Trial(NamedTuple):
    """One fault of one scenario, and how it goes without."""

    scenario: Scenario
    fault: Fault
    nth: int
    undisturbed: Undisturbed


def run_trial(bench: Bench, trial: Trial) -> tuple[bool, list[Finding]]:
    """Return whether the fault came to pass, and what was wrong then."""
    scenario, fault = trial.scenario, trial.fault
    bench.lay_out(scenario)
    bench.shim.set_fault(fault, trial.nth)
    first = bench.run(scenario.command, arm=True)
    call = bench.shim.fired
    if not call:
        return False, []
    problems = list(_judge_first(bench, trial, first))
    again = bench.run(scenario.try_again)
    problems += judge_second(bench, scenario, again, trial.undisturbed.names_after)
    place = (scenario.name, fault.name, trial.nth, str(call.name))
    said = f"{first.said[-1500:]}\n-- second --\n{again.said[-1500:]}"
    return True, [Finding(*place, problem, said) for problem in problems]


def _judge_first(bench: Bench, trial: Trial, first: Ended) -> Iterator[str]:
    """Say what is wrong with how the command ended, and with what stands then."""
    fault, state = trial.fault, bench.read_state(trial.scenario, first.said)
    if state not in (OLD, NEW):
        yield f"what stands is neither old nor new: {state}"
    if fault.action is Action.KILL:
        if first.code not in (_KILLED, *trial.scenario.codes):
            yield f"exit code {first.code}"
        return
    if first.code == 0 and state != NEW:
        yield f"exit code 0, and what stands is {state}"
    if first.code not in trial.scenario.codes:
        yield f"exit code {first.code}"
    if "Traceback" in first.said:
        yield "a traceback"
    if first.code and not _names_cause(first.said, fault):
        yield "the message does not name the cause"
    can_clean_up = not (fault.after | fault.kinds) & Kind.REMOVE
    if first.code == 1 and can_clean_up:
        new = bench.list_names() - trial.undisturbed.names_before
        left = [name for name in new if name.endswith(".tmp") or name.startswith("tmp/")]
        if fault.after & Kind.RENAME:
            # What is removed only once its new name is on the disk gets its old one back, or stays.
            left = [name for name in left if not name.startswith("a/out/..replacing.")]
        if left:
            yield f"it left {sorted(left)} behind"


def _names_cause(said: str, fault: Fault) -> bool:
    if fault.kinds & Kind.ALLOCATE:
        return "memory" in said
    return os.strerror(fault.error) in said


def judge_second(
    bench: Bench, scenario: Scenario, again: Ended, names_after: set[str]
) -> Iterator[str]:
    """Say what is wrong after the command was given again, without a fault."""
    if again.code:
        yield f"the second try ends with exit code {again.code}"
        return
    state = bench.read_state(scenario, again.said)
    if state != NEW:
        yield f"after the second try what stands is {state}"
    names = bench.list_names()
    left, gone = _choose_settled(scenario, names - names_after, names_after - names)
    if left or gone:
        yield f"after the second try there are {sorted(left)} too, and {sorted(gone)} not"


def _choose_settled(
    scenario: Scenario, left: set[str], gone: set[str]
) -> tuple[set[str], set[str]]:
    """Return those names of both that no clock chooses. What a writer left is never one of these."""
    if not scenario.varies:
        return left, gone
    left, gone = (
        {name for name in names if name.endswith(".tmp") or not name.startswith(scenario.varies)}
        for names in (left, gone)
    )
    return left, gone


def run_undisturbed(bench: Bench, scenario: Scenario) -> Undisturbed:
    """Run a command without a fault."""
    bench.lay_out(scenario)
    before, history = bench.list_names(), History(bench.root)
    bench.shim.set_fault(None, 0)
    trace = bench.base / "trace"
    trace.write_bytes(b"")
    ended = bench.run(scenario.command, arm=True)
    seen = bench.shim.seen
    history.follow(read_trace(trace))
    state = bench.read_state(scenario, ended.said)
    if ended.code or state != NEW:
        raise RuntimeError(f"{scenario.name} fails without a fault: {ended}, {state}")
    return Undisturbed(before, bench.list_names(), seen, history)


def rehearse_cut(
    bench: Bench, scenario: Scenario, disk: Disk, said: str, names_after: set[str]
) -> list[Finding]:
    """Return what is wrong with what a power cut may leave, and with going on from there."""
    disk.lay_out(bench.root)
    problems = []
    state = bench.read_state(scenario, said)
    if state not in (OLD, NEW):
        problems.append(f"what stands is neither old nor new: {state}")
    again = bench.run(scenario.try_again)
    problems += judge_second(bench, scenario, again, names_after)
    return [
        Finding(scenario.name, "power cut", 0, "", problem, again.said[-1500:])
        for problem in problems
    ]
