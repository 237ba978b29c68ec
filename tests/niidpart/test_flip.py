"""One damaged byte, anywhere in a split file, is refused or changes nothing that can be read. No crash, no hang, no other exception."""

import json
import subprocess
import sys
from pathlib import Path

CHILDREN = 2
WALL = 90  # seconds a child may take; it needs about ten


def test_every_flipped_byte_is_refused_or_changes_nothing(small_file, tmp_path):
    children = []
    for i in range(CHILDREN):
        folder = tmp_path / str(i)
        folder.mkdir()
        command = [sys.executable, "-P", str(Path(__file__).with_name("flip_child.py")), str(small_file), str(folder), str(i), str(CHILDREN)]
        children.append((folder, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
    results = []
    try:
        for folder, child in children:
            try:
                out, err = child.communicate(timeout=WALL)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"hung or slow at byte {(folder / 'at').read_text()} of {small_file.name}") from None
            assert child.returncode == 0, f"died ({child.returncode}) at byte {(folder / 'at').read_text()}: {err[-500:]}"
            results.append(json.loads(out))
    finally:
        for _, child in children:
            child.kill()
            child.communicate()
    assert [line for r in results for line in r["wrong"]] == []
    reads = 2 * small_file.stat().st_size
    refused = sum(r["refused"] for r in results)
    assert refused + sum(r["same"] for r in results) == reads
    assert refused > 0.8 * reads  # what is left lies in gaps that HDF5 keeps between its structures, or says the same with other bits
