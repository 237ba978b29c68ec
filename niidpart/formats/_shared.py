"""What several formats share: where a split is from, which parties go in one file, which have nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..data import Data
from ..errors import FileFault, UsageError
from ..features.examples import read_examples
from ..splits.part import Part
from ..splits.recipe import JSON
from ..splits.split import FederatedSplit

ABOUT = "niidpart.json"
_LARGEST = 1 << 24  # bytes of such a file; class names are all that can be long
SHARD = 1 << 26  # bytes of examples that go in one file, unless a party has more


def about(split: FederatedSplit) -> bytes:
    """The file that says which split a folder was made of: recipe, source, digest and size of each part, types of the party columns."""
    said = {
        "niidpart": "export",
        "digest": split.digest,
        "recipe": split.recipe.to_json(),
        "source": split.source.to_json(),
        "parts": {name: part.digest for name, part in split.parts.items()},
        "examples": {name: part.n for name, part in split.parts.items()},
        "columns": {name: column.dtype.str for name, column in split.columns.items()},
    }
    return json.dumps(said, sort_keys=True, indent=1, allow_nan=False).encode() + b"\n"


def read_about(folder: Path) -> JSON:
    """What the folder's niidpart.json says, {} where there is none. FileFault where it is none of ours."""
    path = folder / ABOUT
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"more than {_LARGEST} bytes")
        said = json.loads(path.read_bytes())
        kinds = {"digest": str, "recipe": dict, "source": dict, "parts": dict, "columns": dict}
        if not isinstance(said, dict) or not all(
            type(said.get(key)) is kind for key, kind in kinds.items()
        ):
            raise UsageError(f"{', '.join(kinds)} are needed")
    except (ValueError, RecursionError) as error:
        raise FileFault(
            f"{path} is not what niidpart writes ({str(error)[:200]}); remove it to import the rows alone"
        ) from error
    return said


def example_bytes(split: FederatedSplit, data: Data) -> int:
    """Bytes of one example in memory, with transforms."""
    return int(
        read_examples(split, data, int(np.argmax(split.train.sizes > 0)), lossy=True).x[:1].nbytes
    )


def shards(part: Part, bytes_each: int) -> Iterator[range]:
    """Parties in order, in runs of at most SHARD bytes, or of one party."""
    first, held = 0, 0
    for p, size in enumerate(part.sizes.tolist()):
        if p > first and held + size * bytes_each > SHARD:
            yield range(first, p)
            first, held = p, 0
        held += size * bytes_each
    yield range(first, part.n_parties)


def without(split: FederatedSplit, parts: tuple[str, ...]) -> list[str]:
    """["party 3 has no examples in train", ...] of the parts that hold anything."""
    return [
        f"{'party' if len(none) == 1 else 'parties'} {', '.join(map(str, none[:10]))}{', ...' if len(none) > 10 else ''} in {name}"
        for name in parts
        if split.parts[name].n
        and len(none := np.flatnonzero(split.parts[name].sizes == 0).tolist())
    ]
