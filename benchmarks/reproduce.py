"""Train what examples/reproduction/works.toml lists, in its order, and pack what came of it.

    python benchmarks/reproduce.py [NAME ...] --data-root DATA --folder FOLDER [--workers 2] [--dry-run]

Each work is a study of a paper at full settings, in FOLDER/NAME. Every ten minutes, and when it ends, it is
packed into examples/reproduction/NAME.json.xz, which is for you to commit; where FOLDER has no such study,
on another machine, that file is unpacked first, and what it has is not trained again. It may be stopped at
any time (Ctrl-C, SIGTERM, kill -9) and started again. A work of which cells fail, such as runs that diverge,
does not keep the next from being trained; the exit code says in the end that there was one.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fltrain.studies.folder.study_folder import StudyFolder, is_study
from fltrain.studies.packing.packed_file import PACKED
from fltrain.studies.packing.study_packing import pack_study, unpack_study

KEPT = Path(__file__).parents[1] / "examples" / "reproduction"
_FLTRAIN = (sys.executable, "-m", "niidpart_cli.train")
_EVERY = 600  # seconds between two packings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="Works.  [all]")
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--folder", type=Path, default=Path("reproduction"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dry-run", action="store_true", help="Say what each takes.")
    asked = parser.parse_args()
    failed = []
    for work in choose_works(asked.names):
        command = [*_FLTRAIN, *spell_work(work), "--data-root", asked.data_root]
        folder = asked.folder / work["name"]
        if asked.dry_run:
            subprocess.run([*command, "--dry-run", "--workers", str(asked.workers)], check=True)
            continue
        bring_back(work["name"], folder, asked.data_root)
        if not train([*command, "--out", str(folder), "--workers", str(asked.workers)], folder):
            failed.append(work["name"])
    if failed:
        sys.exit(f"not all cells are done of {', '.join(failed)}")


def read_works() -> list[dict[str, Any]]:
    """Return all works, in their order."""
    return list(tomllib.loads((KEPT / "works.toml").read_text())["works"])


def choose_works(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the works of some names, all for none. SystemExit for a name that there is not."""
    works = {work["name"]: work for work in read_works()}
    unknown = set(names) - set(works)
    if unknown:
        sys.exit(f"there is no work {min(unknown)}; there are: {', '.join(works)}")
    return [works[name] for name in names or works]


def find_packed(name: str) -> Path:
    """Return where a work lies in the repository."""
    return KEPT / f"{name}{PACKED}"


def spell_work(work: Mapping[str, Any]) -> list[str]:
    """Return the words of `fltrain` that a work is."""
    words = ["study", "--paper", work["study"], "--scale", "full"]
    for one in work["only"]:
        words += ["--only", one]
    for one in work.get("set", ()):
        words += ["--set", one]
    if "trials" in work:
        words += ["--trials", str(work["trials"])]
    return words


def bring_back(name: str, folder: Path, data_root: str) -> None:
    """Make the folder of a work that was packed elsewhere, where it is not there."""
    packed = find_packed(name)
    if is_study(folder) or not packed.exists():
        return
    unpack_study(packed, folder, data_root)


def train(command: Sequence[str], folder: Path) -> bool:
    """Train a study, pack it every now and then, and return whether all of its cells are done."""
    # A session of its own: what stops this command then asks all of its workers to stop.
    process = subprocess.Popen(command, start_new_session=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while process.poll() is None:
            try:
                process.wait(_EVERY)
            except subprocess.TimeoutExpired:
                pack(folder)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        pack(folder)
    return process.returncode == 0


def pack(folder: Path) -> None:
    """Pack a study of which something is finished."""
    if is_study(folder) and StudyFolder.open(folder).places.list_done():
        pack_study(folder, find_packed(folder.name))


if __name__ == "__main__":
    main()
