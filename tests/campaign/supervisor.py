"""Hands blocks of mutants to workers, starts anew those that die, and writes down what comes back.

What was done is in `results.jsonl`, a line a block, so that a campaign that was stopped goes on. A mutant that a
worker dies of is a finding, and the rest of its block is examined without it.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
BLOCK = 250  # mutants
SLOW = (signal.SIGPROF, signal.SIGALRM)
DYING = "died"  # word and finding
_ROOM = 1 << 30  # bytes that a disk in memory has to have free


class Worker:
    """One process, and the block that it has."""

    def __init__(self, subject: str, folder: Path):
        self.subject, self.folder = subject, folder
        self.block: dict = {}
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "at").unlink(missing_ok=True)
        paths = [str(TESTS), str(TESTS / "niidpart"), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        with (self.folder / "errors").open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "campaign.worker", self.subject, str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )

    def hand(self, block: dict) -> None:
        if self.process is None:
            self.start()
        self.block = block
        self.process.stdin.write(json.dumps(block) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict | None:
        """What became of the block; None where the process died of a mutant, which is noted in the block."""
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        code = self.process.wait()
        at = self.folder / "at"
        if not at.exists():  # before the first mutant: nothing to do with one
            raise RuntimeError((self.folder / "errors").read_text()[-3000:])
        number = int(at.read_text())
        how = "hung" if -code in SLOW else f"{DYING} ({code})"
        self.block["skipped"].append(number)
        self.block["deaths"].append([number, DYING, how])
        self.end()
        return None

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def read_results(path: Path) -> list[dict]:
    """What was done. A last line that is not whole does not count: it may be about to be written."""
    if not path.exists():
        return []
    *whole, _ = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in whole]


def cut_torn_line(path: Path) -> None:
    """Take away a last line that was cut off: its block is done again."""
    if path.exists():
        written = path.read_bytes()
        path.write_bytes(written[: written.rfind(b"\n") + 1])


def list_open(count: int, results: list[dict]) -> Iterator[dict]:
    """The blocks that are still to be done."""
    done = {result["first"] for result in results}
    for first in range(0, count, BLOCK):
        if first not in done:
            stop = min(first + BLOCK, count)
            yield {"first": first, "stop": stop, "skipped": [], "deaths": []}


def run(
    subject: str, count: int, folder: Path, n_workers: int, tell=lambda results: None
) -> list[dict]:
    """Examine the mutants 0..count-1 and return all results. tell: called after each block."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.jsonl"
    cut_torn_line(path)
    results = read_results(path)
    blocks = list_open(count, results)
    with tempfile.TemporaryDirectory(prefix="campaign-", dir=find_memory_disk()) as scratch:
        workers = [Worker(subject, Path(scratch) / str(i)) for i in range(n_workers)]
        try:
            with path.open("a") as log:
                for result in work_off(workers, blocks):
                    log.write(json.dumps(result) + "\n")
                    log.flush()
                    results.append(result)
                    tell(results)
        finally:
            for worker in workers:
                worker.end()
    return results


def find_memory_disk() -> str | None:
    """A disk in memory where there is one with room: a mutant is written, read once and replaced."""
    disk = "/dev/shm"
    if not os.access(disk, os.W_OK) or shutil.disk_usage(disk).free < _ROOM:
        return None
    return disk


def work_off(workers: list[Worker], blocks: Iterator[dict]) -> Iterator[dict]:
    """Hand out blocks as workers are free; give each result as it comes."""
    busy = [worker for worker in workers if hand_next(worker, blocks)]
    while busy:
        ready = select.select([worker.process.stdout for worker in busy], [], [])[0]
        for worker in [w for w in busy if w.process.stdout in ready]:
            result = worker.receive()
            if result is None:
                worker.hand(worker.block)
                continue
            result["findings"] += result.pop("deaths")
            yield result
            if not hand_next(worker, blocks):
                busy.remove(worker)


def hand_next(worker: Worker, blocks: Iterator[dict]) -> bool:
    block = next(blocks, None)
    if block is not None:
        worker.hand(block)
    return block is not None


def add_up(results: list[dict]) -> tuple[dict[str, Counter], list[list]]:
    """{kind: {word: n}} and the findings of all blocks together."""
    tally: dict[str, Counter] = {}
    for result in results:
        for kind, words in result["tally"].items():
            tally.setdefault(kind, Counter()).update(words)
        for _, kind, _ in result["findings"]:
            if kind == DYING:
                tally.setdefault(kind, Counter()).update(["mutants"])
    return tally, [finding for result in results for finding in result["findings"]]


def render(results: list[dict]) -> str:
    """The figures as a table of Markdown, and the findings below it."""
    tally, findings = add_up(results)
    words = sorted({word for counts in tally.values() for word in counts} - {"mutants"})
    words.insert(0, "mutants")
    total: Counter = sum(tally.values(), Counter())
    lines = [f"| damage | {' | '.join(words)} |", f"| --- {'| ---: ' * len(words)}|"]
    for kind, counts in [*sorted(tally.items()), ("all", total)]:
        lines.append(f"| {kind} | {' | '.join(f'{counts[word]:,}' for word in words)} |")
    lines += ["", f"{len(findings)} findings"]
    lines += [f"  {number} ({kind}): {reason}" for number, kind, reason in findings[:50]]
    return "\n".join(lines)
