"""The caches of Hugging Face, read without the network."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...arithmetic.rng import Ints
from ...errors import FileFault, UsageError
from .parquet_table import require_all_shards

_ROWS = 1024  # that are taken at a time


class OnDisk:
    """A `datasets.Dataset` as a table; images stay encoded."""

    def __init__(self, dataset: Any, files: Sequence[Path] = ()):
        self._data = dataset.with_format("arrow")
        self.n = len(dataset)
        self.schema = dataset.features.arrow_schema
        self.described: Mapping[str, Any] = dataset.features.to_dict()
        self.files = list(files) or [Path(f["filename"]) for f in dataset.cache_files]

    def column(self, name: str) -> Any:
        """The whole column."""
        return self._data.select_columns([name])[:].column(name)

    def batches(self, rows: Ints, columns: Sequence[str]) -> Iterator[tuple[Ints, Any]]:
        """(places in `rows`, a table of these rows)."""
        data = self._data.select_columns(list(columns))
        for start in range(0, len(rows), _ROWS):
            places = np.arange(start, min(start + _ROWS, len(rows)))
            yield places, data[rows[places].tolist()]


@contextlib.contextmanager
def stay_offline() -> Iterator[None]:
    """The libraries without network and progress bars; what was set before is set again afterwards."""
    import datasets
    import huggingface_hub.constants

    switches = [
        (datasets.config, "HF_HUB_OFFLINE"),
        (datasets.config, "HF_DATASETS_OFFLINE"),
        (huggingface_hub.constants, "HF_HUB_OFFLINE"),
    ]
    before = [
        (module, name, getattr(module, name)) for module, name in switches if hasattr(module, name)
    ]
    bars = not datasets.are_progress_bars_disabled()
    try:
        for module, name, _ in before:
            setattr(module, name, True)
        datasets.disable_progress_bars()
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        if bars:
            datasets.enable_progress_bars()


def find_in_caches(
    repo: str, root: Path | None, config: str | None, revision: str | None
) -> tuple[Path, str, Mapping[str, OnDisk] | None]:
    """(folder, commit, {split: table} or None) of a data set in the caches: its files as they were fetched, else what `datasets` made of them.

    root: HF_HOME, or the folder `hub` in it; None: where the libraries look.
    """
    import datasets
    import huggingface_hub

    hub = None if root is None else root / "hub" if (root / "hub").is_dir() else root
    made = (
        Path(datasets.config.HF_DATASETS_CACHE)
        if root is None
        else root / "datasets"
        if (root / "datasets").is_dir()
        else root.parent / "datasets"
    )
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                repo, repo_type="dataset", revision=revision, cache_dir=hub, local_files_only=True
            )
        )
        if any(
            p.suffix in (".parquet", ".arrow", ".csv", ".json", ".jsonl", ".png", ".jpg")
            for p in folder.rglob("*")
        ):
            return folder, folder.name, None
    except FileNotFoundError:  # huggingface_hub's own is one
        pass
    found = _prepared(repo, made, config, revision)
    if found is None:
        places = [hub or Path(huggingface_hub.constants.HF_HUB_CACHE), made]
        at = f" at {revision}" if revision else ""
        raise FileNotFoundError(
            f"{repo}{at} is not in the cache: looked in {places[0]} and {places[1]}. Get it with: hf download {repo} --repo-type dataset"
            + (f" --revision {revision}" if revision else "")
        )
    splits = {}
    for split in _splits(found):
        files = sorted(
            [*found.glob(f"*-{split}.arrow"), *found.glob(f"*-{split}-?????-of-?????.arrow")]
        )
        if not files:
            raise FileFault(
                f"{found} has no files of the split {split!r}; fetch the data set again"
            )
        require_all_shards(files)
        try:
            splits[split] = OnDisk(
                datasets.concatenate_datasets([datasets.Dataset.from_file(str(f)) for f in files]),
                files,
            )
        except (ValueError, OSError) as error:  # pyarrow's own are these
            raise FileFault(
                f"{files[0]} cannot be read ({error}); fetch the data set again"
            ) from error
    return found, found.name, splits


def _prepared(repo: str, cache: Path, config: str | None, revision: str | None) -> Path | None:
    """The folder that `datasets` made: cache/NAMESPACE___NAME/CONFIG/VERSION/COMMIT."""
    from datasets.naming import camelcase_to_snakecase

    space, _, name = repo.rpartition("/")
    base = cache / "___".join(filter(None, [space, camelcase_to_snakecase(name)]))
    found = [
        p.parent
        for p in sorted(base.glob("*/*/*/dataset_info.json"))
        if revision is None or p.parent.name == revision
    ]
    found = [p for p in found if config is None or p.parts[-3] == config]
    if len(found) > 1:
        said = ", ".join(f"config {p.parts[-3]} revision {p.name}" for p in found)
        raise UsageError(
            f"{repo} is in the cache several times; say --config and --revision: {said}"
        )
    return found[0] if found else None


def _splits(folder: Path) -> list[str]:
    import datasets

    try:
        return list(datasets.DatasetInfo.from_directory(str(folder)).splits or {})
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise FileFault(
            f"{folder} has a damaged dataset_info.json ({error}); fetch the data set again"
        ) from error


def require_card_inside(folder: Path) -> None:
    """FileFault where the card of a folder names files elsewhere: a stranger's card would have them read, or fetched."""
    import yaml
    from huggingface_hub.repocard import metadata_load

    for card in (folder / "README.md", folder / ".huggingface.yaml"):
        if card.is_file():
            try:
                held = (
                    metadata_load(card)
                    if card.suffix == ".md"
                    else yaml.safe_load(card.read_text("utf-8"))
                )
            except Exception as error:  # any fault of a stranger's YAML
                raise FileFault(
                    f"{card} holds no valid YAML ({type(error).__name__}: {str(error)[:200]})"
                ) from error
            _only_inside(card, held if isinstance(held, dict) else {})


def require_saved_inside(folder: Path, blobs: Path | None = None) -> None:
    """FileFault where what `save_to_disk` left in a folder is no plain file of that folder, or names such files elsewhere.

    blobs: the folder of a cache that the links of a fetched data set lead to.
    """
    homes = [folder.resolve(), *([blobs.resolve()] if blobs else [])]
    folders = [folder]
    if (index := folder / "dataset_dict.json").is_file():
        _plain_file(index, index.name, folder, homes)
        splits = _said(index, lambda held: held["splits"])
        if not isinstance(splits, list) or not all(
            isinstance(name, str) and re.fullmatch(r"\w+([.-]\w+)*", name) for name in splits
        ):
            raise FileFault(
                f"{index} names splits that are no folders beside it ({str(splits)[:80]}); fetch or save the data set again"
            )
        folders += [folder / name for name in splits]
    for place in folders:
        state, info = place / "state.json", place / "dataset_info.json"
        for path in (state, info):
            if path.exists() or place != folder:
                _plain_file(path, path.name, place, homes)
        for name in (
            _said(state, lambda held: [part["filename"] for part in held["_data_files"]])
            if state.is_file()
            else []
        ):
            _plain_file(state, name, place, homes)


def _said(path: Path, choose: Callable[[Any], Any]) -> Any:
    try:
        return choose(json.loads(path.read_text("utf-8")))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileFault(
            f"{path} is damaged ({type(error).__name__}: {str(error)[:200]}); fetch or save the data set again"
        ) from error


def _plain_file(said_by: Path, name: Any, folder: Path, homes: Sequence[Path]) -> None:
    """FileFault where `name`, a file of `folder`, is none, or lies in none of the homes once links are followed."""
    text = name if isinstance(name, str) else ""
    strange = (
        not text
        or text.startswith(("/", "~"))
        or "\0" in text
        or any(sign in text for sign in ("\\", ":"))
        or ".." in text.split("/")
    )
    there = folder / text
    if (
        strange
        or not there.is_file()
        or not any(there.resolve().is_relative_to(home) for home in homes)
    ):
        raise FileFault(
            f"{said_by} names the file {str(name)[:80]!r}; only files in its own folder are read"
        )


def _only_inside(card: Path, held: Mapping[str, Any]) -> None:
    configs = held.get("configs")
    for config in configs if isinstance(configs, list) else []:
        for text in _texts(
            {key: config.get(key) for key in ("data_files", "data_dir")}
            if isinstance(config, dict)
            else config
        ):
            if (
                ":" in text
                or text.startswith(("/", "~", "\\"))
                or ".." in text.replace("\\", "/").split("/")
            ):
                raise FileFault(
                    f"{card} names the files {text!r}; only files in its own folder are read"
                )


def _texts(value: Any) -> Iterator[str]:
    """All texts in what YAML holds, but for the names of splits."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "split":
                yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
