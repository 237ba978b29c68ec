"""`to_hf`: one party of a split as a data set of the Hugging Face library."""

from pathlib import Path
from typing import Any

from ..data import Data
from ..data.of_split import open_data
from ..features.arrow_table import FeatureKind, encode_features, name_kinds
from ..features.examples import ExampleArrays, read_examples
from ..splits.view import SplitView


def to_hf(
    split: SplitView,
    p: int,
    part: str = "train",
    *,
    data: Data | None = None,
    data_root: str | Path | None = None,
    lossy: bool = False,
) -> Any:
    """Return one party of a split as a `datasets.Dataset`.

    Its columns are row, label (ClassLabel), and image (PNG, of uint8 images) or x (lists of
    numbers), with the split's fixed transforms. Needs datasets; Pillow for images.

    Parameters
    ----------
    split : FederatedSplit or OpenedSplit
        Of an open file, only this party is read.
    p : int
        The party.
    part : {"train", "val", "test"}
    data, data_root : optional
        The data set, or where it lies; without them, where the maker of the split had it.
    lossy : bool
        Also where noise is drawn afresh in training, without that noise.

    Returns
    -------
    datasets.Dataset

    Raises
    ------
    IndexError
        There is no such party.
    UsageError
        The data set is another, has no features, or cannot be found.

    Examples
    --------
    >>> import niidpart
    >>> split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5)
    >>> niidpart.to_hf(split, 3).column_names
    ['row', 'label', 'x']
    """
    data = open_data(split, data_root) if data is None else data
    found = read_examples(split, data, p, part, lossy=lossy)
    return _build_dataset(found, split.source.class_names)


def _build_dataset(found: ExampleArrays, class_names: tuple[str, ...]) -> Any:
    import datasets
    import pyarrow as pa

    features, kind = encode_features(found.x)
    name = "image" if kind == "image" else "x"
    table = pa.table({"row": found.rows, "label": found.y, name: features})
    kinds: dict[str, FeatureKind] = {
        "row": "int64",
        "label": {"class_label": list(class_names)},
        name: kind,
    }
    return datasets.Dataset(name_kinds(table, kinds))
