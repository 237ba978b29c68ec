"""`verify`: derive a split again from its recipe and its data, and say what differs."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ..data import Data
from ..data.of_split import DATA_RULES
from ..disk.progress import Told, listen, tell_nobody
from ..errors import UsageError
from ..registry.own_code import trust_file
from ..splitfile.bounded import Exceeded, run_within_limits
from ..splitfile.faults import Fault, SplitError
from ..splitfile.known_skews import remember_skew
from ..splitfile.limits import UNTRUSTED_MEMORY, UNTRUSTED_TIME
from ..splitfile.manifest import Manifest
from ..splitfile.reading import open_content
from ..splitfile.rules import Examined, examine
from ..splitfile.stored import Content
from ..splits.digests import FORMAT_MAJOR
from ..splits.recipe import JSON
from ..streaming.derivation import STREAMED_ROWS
from ..temporaries import scratch_folder
from .rederivation import Rederived, StatedSplit, rederive


@dataclass(frozen=True)
class Verdict:
    """The outcome of `niidpart.verify`.

    Parameters
    ----------
    faults : list of Fault
        The broken rules; empty if none was found.
    derived : bool
        True if the split was derived again from its data.
    why_not : str
        The reason if not.
    digest : str
        Of the split; "" where the file is at fault.
    versions : dict
        Of the file's format, and of the program that wrote it.

    Examples
    --------
    >>> import niidpart
    >>> niidpart.Verdict(faults=[], derived=False, why_not="its data is not here").exit_code
    3
    """

    faults: list[Fault]
    derived: bool
    why_not: str = ""
    digest: str = field(default="", compare=False)
    versions: JSON = field(default_factory=dict, compare=False)

    @property
    def exit_code(self) -> int:
        """0: derived again, without faults; 1: faults; 3: without faults, and not derived."""
        if self.faults:
            return 1
        return 0 if self.derived else 3

    @property
    def is_of_other_data(self) -> bool:
        """Whether all faults are of the data that was found, and none of the file."""
        return bool(self.faults) and all(fault.rule in DATA_RULES for fault in self.faults)

    def to_json(self) -> JSON:
        """Return the verdict for machines."""
        return asdict(self) | {
            "exit": self.exit_code,
            "checked_by": f"niidpart {version('niidpart')}",
        }


def verify(
    path: str | Path,
    *,
    data: Data | None = None,
    data_root: str | Path | None = None,
    untrusted: bool = False,
    max_memory: int | None = None,
    timeout: float | None = None,
    trust: Sequence[str | Path] = (),
    told: Told = tell_nobody,
) -> Verdict:
    """Check every rule of docs/format.md on a file, and derive its split again to compare.

    Code that a file names (a strategy of a user's own) is not run unless it is that of a trusted
    file. What the recipe of an untrusted file takes to derive is its maker's choice, so that is
    done in a second child process.

    Parameters
    ----------
    path : str or Path
    data : Data, optional
        The data set.
    data_root : str or Path, optional
        Where the data set lies. Without both: where the file's hint says, if the file is the
        reader's own.
    untrusted, max_memory, timeout
        As for `niidpart.read`. The second child has the time that reading left, and as much memory
        again.
    trust : sequence of path, optional
        Your own python files. A strategy or transform that the recipe cites is run if one of them
        is the file that it was, to the letter. Not with `untrusted`.
    told : callable, optional
        told(what is done, how much is done, of how much) is called now and then where 2^26 rows or
        more are read and derived (on the disk, in a folder where the system keeps temporary files),
        or 256 MB or more are digested: rows, or what stands in brackets behind what is done.

    Returns
    -------
    Verdict
        Where memory or time does not suffice, or the data is not found, the split is not derived,
        and `why_not` says so.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    UsageError
        Where a trusted file cannot be loaded.

    Examples
    --------
    >>> import niidpart, numpy as np
    >>> labels = np.arange(100) % 4
    >>> path = niidpart.write(niidpart.make(labels, "dir", n_parties=5, min_size=1), "split.h5")
    >>> verdict = niidpart.verify(path, data=niidpart.from_arrays(None, labels))
    >>> verdict.derived, verdict.faults
    (True, [])
    """
    start = time.monotonic()
    if untrusted and trust:
        raise UsageError("an untrusted file has no code of yours; leave out trust, or untrusted")
    trusted = [trust_file(file) for file in trust]
    with listen(told), LargeRoom() as room:
        examined = _examine_file(path, untrusted, max_memory, timeout, room)
        versions = _state_versions(examined.manifest)
        if examined.split is None:
            reason = "the file itself is at fault"
            return Verdict(examined.faults, False, reason, versions=versions)
        stated = StatedSplit(
            examined.split,
            skew=examined.skew,
            data=data,
            data_root=data_root,
            trusted=trusted,
            folder=room.folder,
        )
        try:
            if untrusted:
                found = _rederive_in_child(stated, max_memory, timeout, time.monotonic() - start)
            else:
                found = rederive(stated)
                if not found.faults:
                    _remember_checked_skew(examined)
        except MemoryError as error:
            found = Rederived([], False, f"there is not the memory to derive it ({error})")
        return Verdict(*found, examined.split.digest, versions)


class LargeRoom(ExitStack):
    """A scratch folder for the rows of a large split; `folder` is None as long as none is large."""

    folder: Path | None = None

    def open_for(self, content: Content) -> None:
        """Make the folder where a file holds so many rows that they are not read into memory."""
        n_rows = 0
        for path, array in content.arrays.items():
            if path.endswith("/indices"):
                n_rows += array.shape[0]
        if n_rows >= STREAMED_ROWS:
            self.folder = self.enter_context(scratch_folder())


def _remember_checked_skew(examined: Examined) -> None:
    """Note that the skew of a file is right, if each number is the computed one to the last bit.

    Rule 65 lets last digits differ, and looks at no more than it knows: what others wrote so is
    shown as computed here.
    """
    split, manifest, skew = examined.split, examined.manifest, examined.skew
    if split is None or manifest is None or skew is None:
        return
    is_same_table = skew.table == split.skew.to_json()
    if is_same_table and np.array_equal(skew.map_beta, split.skew.map_beta):
        remember_skew(manifest.digests, manifest.skew)


def _examine_file(
    path: str | Path,
    untrusted: bool,
    max_memory: int | None,
    timeout: float | None,
    room: LargeRoom,
) -> Examined:
    try:
        with open_content(
            path, untrusted=untrusted, max_memory=max_memory, timeout=timeout
        ) as content:
            if not untrusted:  # what such a file may take is limited as it is
                room.open_for(content)
            return examine(content, room.folder)
    except SplitError as error:
        return Examined(error.faults)


def _state_versions(manifest: Manifest | None) -> JSON:
    if manifest is None:
        return {}
    return {
        "format": f"{FORMAT_MAJOR}.{manifest.minor}",
        "written_by": manifest.written_by,
    }


def _rederive_in_child(
    stated: StatedSplit, max_memory: int | None, timeout: float | None, used: float
) -> Rederived:
    """Derive the split again in a child process with limits. used: seconds that reading took."""
    memory = UNTRUSTED_MEMORY if max_memory is None else max_memory
    seconds = (UNTRUSTED_TIME if timeout is None else timeout) - used
    if stated.data is not None:  # functions do not travel, and no strategy asks for features
        data = replace(stated.data, features=None, test_features=None)
        stated = stated._replace(data=data)
    try:
        faults, derived, why_not = run_within_limits(
            memory, max(seconds, 0.001), "checking.rederivation", "answer_rederived", *stated
        )
    except Exceeded as error:
        return Rederived([], False, str(error))
    found = [Fault(rule, message) for rule, message in faults]
    return Rederived(found, derived, why_not)
