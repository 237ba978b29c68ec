"""One party's examples, in time that grows with their number: of a split, or of a split file that is open."""

import json
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..data import Data
from ..errors import UsageError
from ..registry import coerce
from ..splits.split import PARTS, FederatedSplit
from .transforming import name_transforms, transform

if TYPE_CHECKING:
    from ..splitfile.opened import OpenedSplit


class PartyExamples(NamedTuple):
    """x: [n, ...] as the party sees them: uint8 or floats as the data set has them, float32 with transforms. y: [n] class ids. rows: [n], rising."""

    x: NDArray[Any]
    y: Ints
    rows: Ints


def read_examples(
    split: "FederatedSplit | OpenedSplit",
    data: Data,
    party: int,
    part: str = "train",
    *,
    lossy: bool = False,
) -> PartyExamples:
    """The examples of one party in one part, with the split's fixed transforms. Reads the party's rows and features, and nothing of the others'.

    lossy: also of a split whose noise is drawn afresh in training, then without that noise. ValueError for that without lossy, for data without
    features or of other labels, for a part that there is not, and for a party that is no whole number; IndexError where there is no such party.
    """
    party = coerce("party", party, int)
    if part not in PARTS:
        raise UsageError(f"there is no part {part!r}; the parts are {', '.join(PARTS)}")
    if data.features is None:
        raise UsageError("the data has labels but no features; .party(p) gives the rows")
    if (data.source.n, data.source.labels_sha256) != (split.source.n, split.source.labels_sha256):
        raise UsageError(
            f"the split was made for {split.source.n} examples with other labels than these {data.source.n}; hand over that data set"
        )
    if not lossy and (fresh := [t.name for t in split.recipe.transforms if t.params.get("fresh")]):
        raise UsageError(
            f"the {fresh[0]} of this split is drawn afresh in training; for the examples without it, say lossy=True"
        )
    rows = getattr(split, part).party(party).astype(np.int64)
    seen: Any = (
        split
        if isinstance(split, FederatedSplit)
        else SimpleNamespace(recipe=split.recipe, columns=_Columns(split, party))
    )
    return PartyExamples(
        transform(seen, plain(np.asarray(data.features(rows))), party, rows),
        data.labels[rows],
        rows,
    )


def plain(x: NDArray[Any]) -> NDArray[Any]:
    """Features [n, ...] in this machine's order of bytes. ValueError where an example has no numbers."""
    if 0 in x.shape[1:]:
        raise UsageError(
            f"the features have shape [n, {', '.join(map(str, x.shape[1:]))}], so no example holds a number; go on with the labels alone"
        )
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


class _Columns(Mapping[str, Mapping[int, Any]]):
    """Of each column that a transform needs, the value of one party."""

    def __init__(self, split: "OpenedSplit", party: int):
        prefixes = tuple(f"{name}_" for name, _ in name_transforms(split.recipe))
        self._split, self._party = split, party
        self._names = (
            [name for name in split.columns if name.startswith(prefixes)] if prefixes else []
        )

    def __getitem__(self, name: str) -> Mapping[int, Any]:
        return {self._party: self._split.column_of(name, self._party)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def to_hf_dataset(found: PartyExamples, class_names: tuple[str, ...]) -> Any:
    """A `datasets.Dataset` of one party: row, label (ClassLabel), and image (PNG, of uint8 images) or x (lists of numbers)."""
    import datasets
    import pyarrow as pa

    from ..formats._parquet import described, features_of

    values, kind = features_of(found.x)
    name = "image" if kind == "image" else "x"
    kinds = {"row": "int64", "label": {"class_label": list(class_names)}, name: kind}
    about = {"info": {"features": {key: described(kind) for key, kind in kinds.items()}}}
    table = pa.table({"row": found.rows, "label": found.y, name: values})
    return datasets.Dataset(table.replace_schema_metadata({"huggingface": json.dumps(about)}))
