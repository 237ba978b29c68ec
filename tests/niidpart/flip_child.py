"""Run by test_flip.py: reads copies of a split file that differ in one byte, and says which were taken and told something else.

Arguments: the file, a folder to work in, first offset, step between offsets. One JSON object on stdout at the end; the offset at work is in
the file `at`, so that the parent knows where a crash or a hang was.
"""

import json
import resource
import sys
from pathlib import Path

import niidpart
from niidpart.split import array_digest


def told(split):
    """Everything that can be read from a split."""
    parts = {name: [array_digest(a) for a in (p.indptr, p.indices, p.counts)] for name, p in split.parts.items()}
    arrays = {f"{kind} {name}": array_digest(a) for kind in ("draws", "columns") for name, a in getattr(split, kind).items()}
    return json.dumps([split.digest, split.recipe.to_json(), split.source.to_json(), split.root, parts, arrays], sort_keys=True)


def main(original, folder, first, step):
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # a byte that makes the library ask for terabytes is a fault as well
    whole, truth = Path(original).read_bytes(), told(niidpart.read(original))
    path, at = Path(folder) / "flipped.h5", Path(folder) / "at"
    result = {"refused": 0, "same": 0, "wrong": []}
    for offset in range(first, len(whole), step):
        at.write_text(str(offset))
        for mask in (0xFF, 0x01):
            flipped = bytearray(whole)
            flipped[offset] ^= mask
            path.write_bytes(flipped)
            try:
                same = told(niidpart.read(path)) == truth
            except niidpart.SplitError:
                result["refused"] += 1
            except Exception as error:
                result["wrong"].append(f"byte {offset} ^ {mask}: {type(error).__name__}: {error}")
            else:
                result["same"] += same
                if not same:
                    result["wrong"].append(f"byte {offset} ^ {mask}: read as another split")
    print(json.dumps(result))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
