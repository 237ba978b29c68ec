"""`make_large`: from labels that are read in pieces to a split whose rows lie in files."""

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..data.label_stream import LabelStream, write_label_column
from ..disk.progress import Told, listen, tell_nobody
from ..errors import require_type
from ..files import explain_refusal, make_folder
from ..making.completion import compose
from ..registry import UNSET
from ..splits.recipe import Recipe
from ..splits.split import FederatedSplit
from ..temporaries import advise_elsewhere, scratch_folder
from .derivation import derive_on_disk, require_streamable

_BYTES_ON_DISK = 24  # of a row, at most at one time: sorted words twice, and what is kept
_BYTES_OF_HOLDOUTS = 8  # and with validation or test parts


@contextmanager
def make_large(
    labels: LabelStream,
    strategy: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    n_parties: int | None = None,
    seed: int = UNSET,
    transforms: Sequence[tuple[str, Mapping[str, Any]]] | None = None,
    val: float = UNSET,
    test: float = UNSET,
    scratch: str | os.PathLike[str] | None = None,
    told: Told = tell_nobody,
    **options: Any,
) -> Iterator[FederatedSplit]:
    """Make a split of labels that are larger than memory, on the disk, for a `with` statement.

    It is the split that `make` gives, with the same digest, and it can be read, measured and
    written as that one can until the statement ends.

    Parameters
    ----------
    labels : LabelStream
        As `niidpart.stream_labels` gives them.
    strategy, recipe, n_parties, seed, transforms, val, test, **options
        As for `make`. Strategies that look at each row are refused.
    scratch : path, optional
        The folder in which a temporary one is made, for 24 bytes a row, 32 with validation or test
        parts. Else where the system keeps such things, which may be memory.
    told : callable, optional
        told(what is done, rows done, of how many) is called now and then.

    Yields
    ------
    FederatedSplit

    Raises
    ------
    UsageError
        For anything that cannot be done, with the numbers.
    OSError
        The disk refuses, or has not the room.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> np.save("labels.npy", np.arange(1000) % 10)
    >>> labels = niidpart.stream_labels("labels.npy")
    >>> with niidpart.make_large(labels, "dir", beta=0.5, n_parties=5) as split:
    ...     split.train.party(0).dtype, niidpart.write(split, "split.h5").name
    (dtype('int32'), 'split.h5')
    """
    require_type("labels", labels, LabelStream, "what niidpart.stream_labels gives")
    complete = compose(
        strategy,
        recipe=recipe,
        n_parties=n_parties,
        seed=seed,
        transforms=transforms,
        val=val,
        test=test,
        **options,
    )
    require_streamable(complete, labels.n)
    parent = None if scratch is None else Path(scratch)
    if parent is not None:
        with explain_refusal(f"the folder {parent} cannot be made", "write to another place"):
            make_folder(parent)
    with scratch_folder(parent) as folder:
        require_room(folder, complete, labels.n)
        with listen(told):
            column = write_label_column(labels, folder)
            split = derive_on_disk(column, complete, folder)
        yield split


def require_room(folder: Path, recipe: Recipe, n: int) -> None:
    """Raise OSError where a disk has not the room to make a split of n rows."""
    each = _BYTES_ON_DISK
    if recipe.val or recipe.test:
        each += _BYTES_OF_HOLDOUTS
    needed, free = n * each, shutil.disk_usage(folder).free
    if needed > free:
        got = f"{folder.parent} has {free / 1e9:.1f} GB free"
        wanted = f"making a split of {n} rows takes up to {needed / 1e9:.1f} GB on the way"
        raise OSError(errno.ENOSPC, f"{got}, and {wanted}; {advise_elsewhere(folder)}")
