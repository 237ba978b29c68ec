"""`niidpart.open`: a look into a split file without reading all of it."""

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rng import Ints
from ..errors import UsageError
from ..splits.recipe import JSON, Recipe, Source
from ..splits.split import PARTS, RowIds
from .check import Rising, adds_up, door, hint_root, outline, risen
from .faults import Refused, SplitError
from .layout import KEYS
from .limits import MAX_SKEW
from .manifest import Manifest, json_of
from .stored import Array, Content, Stored, values

if TYPE_CHECKING:
    from ..data import Data


def open(
    path: str | Path,
    *,
    untrusted: bool = False,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> "OpenedSplit":
    """The split in a file, opened and not read: a party's rows cost time by their number, not by the size of the file.

    Checked now: the file's structure, its manifest, and the types and shapes of its arrays (all rules of docs/format.md up to 30, 36, 37, 40, 42
    and 52). Checked when values are read: the checksum of each chunk, and rules 31 to 33 on what was asked for. Not checked: the digests, and that
    no example is held twice; `read` and `verify` do that. SplitError names the broken rules. untrusted, max_memory, timeout: as for `read`; the
    file has to be closed again within `timeout`.
    """
    stack = ExitStack()
    with stack:  # closes again where something is wrong
        content = stack.enter_context(
            door(path, untrusted=untrusted, max_memory=max_memory, timeout=timeout)
        )
        manifest, faults = outline(content)
        if manifest is None or faults:
            raise SplitError(path, faults)
        return OpenedSplit(Path(path), content, manifest, stack.pop_all())


class OpenedSplit:
    """A split file that is open. `with niidpart.open(path) as split: split.train.party(3)`; after `close` nothing more can be read.

    recipe, source: as in the manifest. digest: what the manifest says; nobody has compared it with the content. root: where its maker had the
    data, "" in a file of somebody else.
    """

    def __init__(self, path: Path, content: Content, manifest: Manifest, stack: ExitStack):
        self.path, self._content, self._stack = path, content, stack
        self.recipe: Recipe = manifest.recipe
        self.source: Source = manifest.source
        self.digest: str = manifest.digests["split"]
        self.root: str = hint_root(content)
        self._open = True
        self._data: dict[str | Path | None, Data] = {}
        self.train, self.val, self.test = (OpenedPart(self, name) for name in PARTS)

    @property
    def n_parties(self) -> int:
        return self.recipe.n_parties

    @property
    def columns(self) -> list[str]:
        """Names of the values that each party has."""
        return sorted(
            name.removeprefix("parties/")
            for name in self._content.arrays
            if name.startswith("parties/")
        )

    @property
    def draws(self) -> list[str]:
        """Names of what the strategy drew."""
        return sorted(
            name.removeprefix("draws/")
            for name in self._content.arrays
            if name.startswith("draws/")
        )

    def column(self, name: str) -> Array:
        """[P] one value a party. KeyError where there is no such column."""
        return self._values(f"parties/{name}")

    def column_of(self, name: str, p: int) -> Any:
        """The value that party p has in a column; reads what stands around it. KeyError where there is no such column."""
        if not 0 <= p < self.n_parties:
            raise IndexError(f"party {p} does not exist; the parties are 0..{self.n_parties - 1}")
        stored = self._content.arrays[f"parties/{name}"]
        return self._tell(lambda: stored.rows(p, p + 1))[0]

    def data(self, data_root: str | Path | None = None) -> "Data":
        """The data set that the split is of, from `data_root` or where its maker had it. Its labels are read once, features when they are asked for.

        ValueError, FileNotFoundError: as `niidpart verify` says where it is not found; a file of somebody else (untrusted) leads nowhere.
        """
        from ..checking.verification import open_data

        if data_root not in self._data:
            self._data[data_root] = open_data(self, data_root)
        return self._data[data_root]

    def draw(self, name: str) -> Array:
        """What the strategy drew. KeyError where there is no such draw."""
        return self._values(f"draws/{name}")

    @cached_property
    def skew(self) -> JSON | None:
        """The measures of skew as the file states them; None where it states none."""
        table = self._content.arrays.get("skew/table")
        return None if table is None else self._tell(lambda: json_of("skew/table", table, MAX_SKEW))

    def map_beta(self) -> Array | None:
        """[P] the estimate of beta for each party as the file states it; None where it states none."""
        return self._values("skew/map_beta") if "skew/map_beta" in self._content.arrays else None

    def close(self) -> None:
        self._open = False
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"OpenedSplit({self.path}, {self.recipe.strategy}, {self.n_parties} parties, {self.source.name} [{self.source.n}])"

    def _values(self, name: str) -> Array:
        array = self._content.arrays[name]
        got: Array = self._tell(lambda: values(array))
        return got

    def _tell(self, look: Any) -> Any:
        """What `look()` gives, its fault with the path."""
        if not self._open:
            raise UsageError(f"{self.path} was closed; open it again to read from it")
        try:
            return look()
        except Refused as refused:
            raise SplitError(self.path, [refused.fault]) from refused.__cause__


class OpenedPart:
    """One part of a split file that is open: rows of the data set by party."""

    def __init__(self, split: OpenedSplit, name: str):
        self._split, self.name = split, name
        arrays = split._content.arrays
        self._arrays: tuple[Stored, ...] | None = (
            tuple(arrays[f"{name}/{key}"] for key in KEYS) if f"{name}/indptr" in arrays else None
        )

    @property
    def n(self) -> int:
        """Examples in this part, over all parties."""
        return self._arrays[1].shape[0] if self._arrays else 0

    @property
    def n_parties(self) -> int:
        return self._split.n_parties

    @cached_property
    def sizes(self) -> Ints:
        """[P] int64 examples of each party. Reads all of `indptr`: 8 bytes a party."""
        if self._arrays is None:
            return np.zeros(self.n_parties, np.int64)
        stored = self._arrays[0]
        indptr = self._split._tell(lambda: values(stored))
        self._split._tell(lambda: risen(self.name, indptr, self.n))
        sizes: Ints = np.diff(indptr)
        return sizes

    def party(self, p: int) -> RowIds:
        """The rows of party p, ascending. IndexError where there is no such party."""
        self._there(p)
        if self._arrays is None:
            return np.zeros(0, np.int32)
        indptr, indices, _ = self._arrays
        return self._split._tell(lambda: self._rows(indptr, indices, p))  # type: ignore[no-any-return]

    def hf(
        self,
        p: int,
        *,
        data: "Data | None" = None,
        data_root: str | Path | None = None,
        lossy: bool = False,
    ) -> Any:
        """Party p as a `datasets.Dataset`: row, label (ClassLabel), and image (of uint8 images) or x, with the split's fixed transforms.

        data, data_root: the data set, or where it lies; without them, where its maker had it. It is opened once for all parties; each then costs
        time by its size. lossy: also where noise is drawn afresh in training, without that noise. IndexError where there is no such party;
        ValueError where the data set is not found, is another, or has no features. Needs datasets; Pillow for images.
        """
        from ..features.examples import read_examples, to_hf_dataset

        data = self._split.data(data_root) if data is None else data
        return to_hf_dataset(
            read_examples(self._split, data, p, self.name, lossy=lossy),
            self._split.source.class_names,
        )

    def counts(self, p: int) -> NDArray[np.int32]:
        """[K] examples of each class at party p. IndexError where there is no such party."""
        self._there(p)
        if self._arrays is None:
            return np.zeros(len(self._split.source.class_names), np.int32)
        indptr, _, counts = self._arrays
        return self._split._tell(lambda: self._counts(indptr, counts, p))  # type: ignore[no-any-return]

    def _there(self, p: int) -> None:
        if not 0 <= p < self.n_parties:
            raise IndexError(f"party {p} does not exist; the parties are 0..{self.n_parties - 1}")

    def _bounds(self, indptr: Stored, p: int) -> tuple[int, int]:
        a, b = map(int, indptr.rows(p, p + 2))
        if not 0 <= a <= b <= self.n:
            raise Refused(31, f"/{self.name}/indptr does not rise from 0 to {self.n}")
        return a, b

    def _rows(self, indptr: Stored, indices: Stored, p: int) -> Array:
        a, b = self._bounds(indptr, p)
        rows = indices.rows(a, b)
        if len(rows):
            Rising(self.name, np.array([0, b - a]), self._split.source.n)(0, rows)
        return rows

    def _counts(self, indptr: Stored, counts: Stored, p: int) -> Array:
        a, b = self._bounds(indptr, p)
        row = counts.rows(p, p + 1)
        adds_up(self.name, row, np.array([b - a]))
        got: Array = row[0]
        return got
