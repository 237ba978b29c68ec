"""`niidpart.open`: a look into a split file without reading all of it."""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from ..data import Data
from ..heterogeneity import Skew
from ..renamed import warn_renamed
from ..splits.dealing import find_reading, measure_skew
from ..splits.part import PARTS, require_party
from ..splits.recipe import Recipe, Source
from .column_rules import list_column_checks
from .faults import SplitError
from .json_text import read_json
from .limits import MAX_SKEW
from .manifest import Manifest
from .open_file import LazyArrays, OpenFile
from .opened_part import OpenedPart
from .reading import open_content
from .rules import check_digest_names, examine_outline, read_hint
from .stated_skew import parse_skew
from .stored import Content


def open(
    path: str | Path,
    *,
    untrusted: bool = False,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> "OpenedSplit":
    """Open a split file without reading it: a party costs time by its size, not by the file's.

    Checked now: the file's structure, its manifest, and the types and shapes of its arrays (all
    rules of docs/format.md up to 30, 36, 37, 40 to 42 and 52), and that the manifest has digests of
    just what is there. Checked when values are read: the checksum of each chunk, and rules 31 to 33
    and 43 on what was asked for. Not checked: whether the digests are right, and that no example is
    held twice; `read` and `verify` do that.

    Parameters
    ----------
    path : str or Path
    untrusted, max_memory, timeout
        As for `niidpart.read`; the file has to be closed again within `timeout`.

    Returns
    -------
    OpenedSplit

    Raises
    ------
    SplitError
        Names the rules that the file breaks.
    FileNotFoundError
        There is no such file.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> made = niidpart.make(np.arange(100) % 4, "homo", n_parties=5)
    >>> with niidpart.open(niidpart.write(made, "split.h5")) as split:
    ...     len(split.train.party(3))
    20
    """
    stack = ExitStack()
    with stack:  # closes again where something is wrong; else `pop_all` hands it to the split
        content = stack.enter_context(
            open_content(path, untrusted=untrusted, max_memory=max_memory, timeout=timeout)
        )
        manifest, faults = examine_outline(content)
        if manifest is not None and not faults:
            faults = check_digest_names(content, manifest)
        if manifest is None or faults:
            raise SplitError(path, faults)
        return OpenedSplit(Path(path), content, manifest, stack.pop_all())


class OpenedSplit:
    """A split file that is open. Keeps the protocol `SplitView`, as `FederatedSplit` does.

    Use it in a `with` statement; after `close` nothing more can be read.

    Attributes
    ----------
    recipe, source
        As the manifest states them.
    digest : str
        As the manifest states it: it was not compared with the content.
    root : str
        Where the maker had the data; "" in a file that is not the reader's own.
    train, val, test : OpenedPart
    columns, draws : mapping of str to array
        Each array is read when it is asked for; `party_values` reads one party's values.
    data_sets : dict
        Filled by `niidpart.open_data`: the data sets that were opened for this split, by root.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> made = niidpart.make(np.arange(100) % 4, "dir", n_parties=5, min_size=2)
    >>> with niidpart.open(niidpart.write(made, "split.h5")) as split:
    ...     list(split.draws), split.train.party_counts(0).shape
    (['proportions'], (4,))
    """

    def __init__(
        self,
        path: Path,
        content: Content,
        manifest: Manifest,
        stack: ExitStack,
    ):
        self.path, self._file = path, OpenFile(path, content, stack)
        self.recipe: Recipe = manifest.recipe
        self.source: Source = manifest.source
        self.digest: str = manifest.digests["split"]
        self.root: str = read_hint(content)
        self.columns = LazyArrays(self._file, "parties/", list_column_checks(self.recipe))
        self.draws = LazyArrays(self._file, "draws/", {})
        self.train, self.val, self.test = (OpenedPart(self, self._file, name) for name in PARTS)
        self.data_sets: dict[str | Path | None, Data] = {}

    @property
    def n_parties(self) -> int:
        """Parties of the split, those without examples among them."""
        return self.recipe.n_parties

    @property
    def parts(self) -> dict[str, OpenedPart]:
        """The parts by name: train, val, test."""
        return {name: getattr(self, name) for name in PARTS}

    def party_values(self, p: int) -> Mapping[str, Any]:
        """Return party p's value of each column, by name; each is read when it is asked for.

        Raises
        ------
        IndexError
            There is no such party.
        """
        require_party(p, self.n_parties)
        return self.columns.at(p)

    @cached_property
    def skew(self) -> Skew:
        """The skew of the training part, as the file states it.

        Computed from its counts where the file states none, or in terms of another version.
        """
        stored = self._file.arrays.get("skew/table")
        if stored is None:
            return measure_skew(self)
        with self._file.reading():
            table = read_json("skew/table", stored, MAX_SKEW)
        stated = parse_skew(table, self._file.read("skew/map_beta"))
        if stated is None or stated.reading != find_reading(self.recipe):
            return measure_skew(self)
        return stated

    def close(self) -> None:
        """Close the file. Closing it twice is no error."""
        self._file.close()

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
        how = f"{self.recipe.strategy}, {self.n_parties} parties"
        return f"OpenedSplit({self.path}, {how}, {self.source.name} [{self.source.n}])"

    # Old names, for this version.

    def column(self, name: str) -> NDArray[Any]:
        """Return `columns[name]`: its old name."""
        warn_renamed("opened.column(name)", "opened.columns[name]")
        return self.columns[name]

    def column_of(self, name: str, p: int) -> Any:
        """Return `party_values(p)[name]`: its old name."""
        warn_renamed("opened.column_of(name, p)", "opened.party_values(p)[name]")
        return self.party_values(p)[name]

    def draw(self, name: str) -> NDArray[Any]:
        """Return `draws[name]`: its old name."""
        warn_renamed("opened.draw(name)", "opened.draws[name]")
        return self.draws[name]

    def map_beta(self) -> NDArray[Any]:
        """Return `skew.map_beta`: its old name."""
        warn_renamed("opened.map_beta()", "opened.skew.map_beta")
        return self.skew.map_beta

    def data(self, data_root: str | Path | None = None) -> Data:
        """Return the data set of the split: the old name of `niidpart.open_data`."""
        from ..data.of_split import open_data

        warn_renamed("opened.data(data_root)", "niidpart.open_data(opened, data_root)")
        return open_data(self, data_root)
