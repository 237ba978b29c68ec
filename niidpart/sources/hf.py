"""Hugging Face data sets that lie on your disk: a folder, or what `datasets` and `huggingface_hub` keep in their caches."""

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from ..data import Data
from ..data.readers.arrow import ArrowTable, ColumnChoice, load_tables
from ..data.readers.hub_cache import (
    OnDisk,
    find_in_caches,
    require_card_inside,
    require_saved_inside,
    stay_offline,
)
from ..data.readers.images import Channels, Checksum, Size
from ..data.readers.parquet_table import ParquetTable
from ..data.readers.table import Drop, FeatureColumns, Group, Label
from ..errors import FileFault, UsageError

__all__ = ["hf"]

_SAVED = ("dataset_dict.json", "state.json")  # what save_to_disk leaves
_READERS = (
    "arrow",
    "csv",
    "json",
    "imagefolder",
)  # readers of `datasets` that are used, besides parquet, which is read here


def hf(
    root: str | Path | None = None,
    *,
    repo: Annotated[str | None, "ID of a data set in the cache, such as ylecun/mnist."] = None,
    config: Annotated[str | None, "Which configuration of the data set."] = None,
    revision: Annotated[str | None, "Which commit, tag or branch of the data set."] = None,
    label: Label = "label",
    group: Group = None,
    features: FeatureColumns = None,
    drop: Drop = None,
    train_split: Annotated[str, "Split that is trained on."] = "train",
    test_split: Annotated[
        str | None, "Split that is the test set; unless given test, else validation, else none."
    ] = None,
    size: Size = None,
    channels: Channels = None,
    checksum: Checksum = True,
) -> Data:
    """A data set of Hugging Face, offline: `--dataset hf:ID` from the cache, `--dataset hf:FOLDER` from a folder. Needs datasets, pyarrow.

    root: a folder (parquet, arrow, CSV or JSON files, images, or what save_to_disk wrote); with repo: the cache, if it is not at HF_HOME.
    Columns are taken as by parquet; class names are kept. Nothing is fetched, and no code of a data set is run. Files are read as
    they are now: never from a cache that `datasets` made of an earlier state of the folder.
    """
    if repo is None and root is None:
        raise UsageError(
            "say which data set: --dataset hf:ID (from the cache) or --dataset hf:FOLDER"
        )
    if repo is not None and not re.fullmatch(
        r"\w[\w.-]*(/\w[\w.-]*)?", repo, re.ASCII
    ):  # it may come from a stranger's split file, and becomes a path
        raise UsageError(f"repo is {repo!r}; the ID of a data set, such as ylecun/mnist, is needed")
    base, commit, prepared = Path(root or ""), "", None
    if repo is None and not base.is_dir():
        raise FileNotFoundError(
            f"there is no folder {base}; get one with: hf download ID --repo-type dataset --local-dir {base}"
        )
    with stay_offline():
        if repo is not None:
            base, commit, prepared = find_in_caches(
                repo, None if root is None else Path(root), config, revision
            )
        blobs = (
            None if repo is None else base.parent.parent / "blobs"
        )  # where the links of a snapshot lead
        train, test = _chosen(
            prepared or _folder(base, config, blobs), train_split, test_split, repo or str(base)
        )
        return load_tables(
            train,
            test,
            ColumnChoice(label, group, features, drop, None, size, channels, checksum),
            base.absolute(),
            commit,
        )


def _chosen(
    splits: Mapping[str, ArrowTable], train: str, test: str | None, where: str
) -> tuple[ArrowTable, ArrowTable | None]:
    for name in (train, test):
        if name is not None and name not in splits:
            raise UsageError(
                f"{where} has no split {name!r}; say --train-split or --test-split with one of {', '.join(splits)}"
            )
    if test is None:
        test = next(
            (name for name in ("test", "validation", "valid") if name in splits and name != train),
            None,
        )
    return splits[train], None if test is None else splits[test]


def _folder(folder: Path, config: str | None, blobs: Path | None) -> Mapping[str, ArrowTable]:
    """{split: table} of a folder, as `datasets` would find them."""
    import datasets

    if any((folder / name).is_file() for name in _SAVED):
        require_saved_inside(folder, blobs)
        with _named(folder):
            held = datasets.load_from_disk(str(folder))
        return (
            {str(k): OnDisk(v) for k, v in held.items()}
            if isinstance(held, datasets.DatasetDict)
            else {"train": OnDisk(held)}
        )
    require_card_inside(folder)
    with tempfile.TemporaryDirectory(prefix="niidpart-hf-") as scratch:
        with _named(folder):
            builder = datasets.load_dataset_builder(str(folder), name=config, cache_dir=scratch)
        kind = type(builder).__module__.rpartition(".")[2]
        files = {
            str(split): [Path(f) for f in found]
            for split, found in (builder.config.data_files or {}).items()
        }
        if away := [
            f
            for found in files.values()
            for f in found
            if not f.is_relative_to(folder.absolute()) and not f.is_relative_to(folder.resolve())
        ]:
            raise FileFault(f"{folder} says that {away[0]} is part of it, which lies outside")
        if kind == "parquet":
            described = builder.info.features.to_dict() if builder.info.features else None
            return _counted(
                {split: ParquetTable(found, described) for split, found in files.items()},
                builder.info.splits,
                folder,
            )
        if kind not in _READERS:
            raise UsageError(
                f"{folder} holds files that are read by {kind!r}; {', '.join(('parquet', *_READERS))} can be read"
            )
        with _named(folder):
            builder.download_and_prepare()
            made = builder.as_dataset(in_memory=True)
        return {str(split): OnDisk(made[split], files.get(str(split), [])) for split in made}


def _counted(tables: dict[str, ParquetTable], said: Any, folder: Path) -> Mapping[str, ArrowTable]:
    """The tables, which have as many rows as the data set's card says; fewer are a download that was cut off."""
    for split, table in tables.items():
        promised = said[split].num_examples if said and split in said else None
        if promised and promised != table.n:
            raise FileFault(
                f"{folder} has {table.n} rows in {split!r}, and its card says {promised}; fetch it again, or correct README.md"
            )
    return tables


@contextlib.contextmanager
def _named(folder: Path) -> Iterator[None]:
    """What `datasets` finds wrong with a folder, as errors that name it."""
    try:
        yield
    except (FileFault, FileNotFoundError):
        raise
    except ModuleNotFoundError:
        raise
    except ValueError as error:
        raise UsageError(f"{folder}: {error}") from error
    except Exception as error:  # files of a stranger: any error of any reader
        raise FileFault(
            f"{folder} cannot be read as a data set ({type(error).__name__}: {str(error)[:300]})"
        ) from error
