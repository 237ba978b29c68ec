"""`python -m campaign SUBJECT`: see `campaign`."""

import argparse
import importlib
import signal
import sys
import tempfile
import time
from pathlib import Path

from . import supervisor

sys.path.insert(0, str(supervisor.TESTS / "niidpart"))  # corpus/


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; the same command goes on"))
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("subject", choices=["splits", "headers", "flips", "runs"])
    parser.add_argument(
        "--count", type=int, default=1_000_000, help="mutants in all; 0: show what was done"
    )
    parser.add_argument("--folder", type=Path, help="where results.jsonl is, to go on with")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--one", type=int, metavar="NUMBER", help="show this mutant alone")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="with --one: write the mutant there"
    )
    given = parser.parse_args()
    given.subject = f"campaign.{given.subject}"
    if given.one is not None:
        return show_one(given.subject, given.one, given.keep)
    done = supervisor.read_results(given.folder / "results.jsonl")
    if given.count == 0:
        return show_all(done)
    start, done_before = time.monotonic(), len(done)

    def tell(results):
        n_now = (len(results) - done_before) * supervisor.BLOCK
        rate = n_now / (time.monotonic() - start)
        n_findings = sum(len(result["findings"]) for result in results)
        n_done = len(results) * supervisor.BLOCK
        line = f"{n_done:,} of {given.count:,} mutants, {rate:.0f} a second, {n_findings} findings"
        print(f"\r{line}", end="", file=sys.stderr, flush=True)

    results = supervisor.run(given.subject, given.count, given.folder, given.workers, tell)
    print(file=sys.stderr)
    return show_all(results)


def show_all(results: list[dict]) -> int:
    print(supervisor.render(results))
    return 1 if any(result["findings"] for result in results) else 0


def show_one(name: str, number: int, keep: Path | None) -> int:
    with tempfile.TemporaryDirectory(prefix="campaign-") as scratch:
        subject = importlib.import_module(name).prepare(Path(scratch))
        outcome = subject.examine(number)
        print(outcome)
        if keep is not None:
            keep.write_bytes(subject.path.read_bytes())
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
