"""Run by test_flip.py: reads copies of a split file that differ in a few bytes, and says which were taken and told something else.

Arguments: the file, a folder to work in, first offset, step between offsets. One JSON object on stdout at the end; what is at work is in
the file `at`, so that the parent knows where a crash or a hang was.
"""

import json
import random
import resource
import sys
from pathlib import Path

import h5py
from corpus.registry import patched, told

import niidpart

OLD = h5py.version.hdf5_version_tuple < (
    2,
    0,
    0,
)  # dies of some edited headers (a division by zero): there a child process reads them
MASKS = (0xFF, 0x01, 0x80, 0x10)
HEADERS = 40 if OLD else 400  # edits of object headers whose checksum is made to fit, in each child


def read(path):
    """All that a file says: the split, and what it states of the skew."""
    split = niidpart.read(path)
    with niidpart.open(path) as stated:
        return told(split), stated.skew.to_json(), stated.skew.map_beta.tobytes()


def read_in_a_child(path):
    return told(niidpart.read(path, untrusted=True))


def flips(whole, first, step):
    """(what, bytes): every byte of the file but one unchanged."""
    for offset in range(first, len(whole), step):
        mask = MASKS[offset // step % len(MASKS)]
        flipped = bytearray(whole)
        flipped[offset] ^= mask
        yield f"byte {offset} ^ {mask}", bytes(flipped)


def headers(whole, seed):
    """(what, bytes): bytes of an object's header changed, and its checksum with them, so that the library believes them."""
    rng = random.Random(seed)
    starts = [i for i in range(len(whole)) if whole[i : i + 4] == b"OHDR"]
    for _ in range(HEADERS):
        start, edited = rng.choice(starts), whole
        for _ in range(rng.choice([1, 1, 2])):
            at = start + rng.randrange(6, 120)
            try:
                edited = patched(
                    edited, at, bytes([rng.choice([0, 1, 128, 255, rng.randrange(256)])])
                )
            except AssertionError:  # the header is shorter
                continue
        yield f"header at {start}, seed {seed}", edited


def main(original, folder, first, step):
    resource.setrlimit(
        resource.RLIMIT_AS, (4 << 30, 4 << 30)
    )  # a byte that makes the library ask for terabytes is a fault as well
    whole, truth = Path(original).read_bytes(), read(original)
    truth_in_a_child = read_in_a_child(original)  # which follows no hint
    path, at = Path(folder) / "flipped.h5", Path(folder) / "at"
    result = {kind: {"refused": 0, "same": 0} for kind in ("flips", "headers")} | {"wrong": []}
    for kind, mutants in (("flips", flips(whole, first, step)), ("headers", headers(whole, first))):
        for what, mutant in mutants:
            at.write_text(what)
            path.write_bytes(mutant)
            try:
                same = (
                    read_in_a_child(path) == truth_in_a_child
                    if kind == "headers" and OLD
                    else read(path) == truth
                )
            except niidpart.SplitError:
                result[kind]["refused"] += 1
            except Exception as error:
                result["wrong"].append(f"{what}: {type(error).__name__}: {error}")
            else:
                result[kind]["same"] += same
                if not same:
                    result["wrong"].append(f"{what}: read as another split")
    print(json.dumps(result))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
