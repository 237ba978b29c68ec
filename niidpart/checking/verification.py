"""`verify`: re-derives a split from its recipe and its data, and says what differs."""

import math
import time
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Data
from ..data.of_split import open_data, source_faults
from ..errors import UsageError
from ..making.completion import complete_recipe
from ..making.derivation import derive
from ..registry import Registry
from ..splitfile.bounded import Exceeded, run_within_limits
from ..splitfile.faults import Fault, SplitError
from ..splitfile.limits import UNTRUSTED_MEMORY, UNTRUSTED_TIME
from ..splitfile.reading import open_content
from ..splitfile.rules import Examined, StoredSkew, examine
from ..splits.digests import FORMAT_MAJOR, digest_array
from ..splits.recipe import IMPORTED, JSON
from ..splits.split import FederatedSplit
from ..strategies import STRATEGIES
from ..transforms import TRANSFORMS

_CLOSE = 1e-6  # relative: logarithms and digamma differ in their last digits from one library to the next, and sums of them follow
_DRAWN = 1e-3  # absolute: where such a digit decides a draw of the bootstrap or of the IID deals, one count of many moves


@dataclass(frozen=True)
class Verdict:
    """faults: broken rules, [] if none was found. derived: whether the split was derived again from its data. why_not: the reason if not.

    digest: of the split, "" where the file is at fault. versions: of the file's format, and of the program that wrote it.
    """

    faults: list[Fault]
    derived: bool
    why_not: str = ""
    digest: str = field(default="", compare=False)
    versions: JSON = field(default_factory=dict, compare=False)

    @property
    def exit_code(self) -> int:
        """0: derived again, without faults; 1: faults; 3: without faults, and not derived."""
        return 1 if self.faults else 0 if self.derived else 3

    def to_json(self) -> JSON:
        """For machines."""
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
) -> Verdict:
    """Every rule of docs/format.md on a file, then the split made anew from recipe and data and compared with it.

    data, data_root: where the labels are; without them, where the file's hint says, if the file is the reader's own. Code that a file names
    (a strategy of a user's own) is never run. untrusted, max_memory, timeout: as for `read`. What such a recipe takes to derive is its maker's
    choice, so that is done in a second child process: it has the time that reading left, and as much memory again. Where that does not suffice,
    or this process runs out of memory, the split is not derived, and `why_not` says so.
    """
    start = time.monotonic()
    try:
        with open_content(path, untrusted=untrusted, max_memory=max_memory, timeout=timeout) as content:
            seen = examine(content)
    except SplitError as error:
        seen = Examined(error.faults)
    if seen.split is None:
        return Verdict(
            seen.faults,
            derived=False,
            why_not="the file itself is at fault",
            versions=_versions(seen),
        )
    work = (seen.split, seen.skew, data, data_root)
    try:
        if untrusted:
            left = (UNTRUSTED_TIME if timeout is None else timeout) - (time.monotonic() - start)
            faults, derived, why_not = _again_apart(
                *work, UNTRUSTED_MEMORY if max_memory is None else max_memory, left
            )
        else:
            faults, derived, why_not = _again(*work)
    except MemoryError as error:
        faults, derived, why_not = [], False, f"there is not the memory to derive it ({error})"
    return Verdict(faults, derived, why_not, seen.split.digest, _versions(seen))


def _versions(seen: Examined) -> JSON:
    if seen.manifest is None:
        return {}
    return {
        "format": f"{FORMAT_MAJOR}.{seen.manifest.minor}",
        "written_by": seen.manifest.written_by,
    }


def _again_apart(
    split: FederatedSplit,
    skew: StoredSkew | None,
    data: Data | None,
    data_root: str | Path | None,
    memory: int,
    seconds: float,
) -> tuple[list[Fault], bool, str]:
    """`_again` in a child process with limits."""
    if data is not None:
        data = replace(
            data, features=None, test_features=None
        )  # functions do not travel, and no strategy asks for features
    try:
        faults, derived, why_not = run_within_limits(
            memory,
            max(seconds, 0.001),
            "checking.verification",
            "answer_again",
            split,
            skew,
            data,
            data_root,
        )
    except Exceeded as error:
        return [], False, str(error)
    return [Fault(rule, message) for rule, message in faults], derived, why_not


def answer_again(*work: Any) -> list[Any]:
    """What the child of `_again_apart` says."""
    faults, derived, why_not = _again(*work)
    return [[[f.rule, f.message] for f in faults], derived, why_not]


def _again(
    split: FederatedSplit, skew: StoredSkew | None, data: Data | None, data_root: str | Path | None
) -> tuple[list[Fault], bool, str]:
    """(faults, whether the split was derived again, why not)."""
    faults = _skew(split, skew)
    if split.recipe.strategy == IMPORTED:
        return _imported(split, faults, data, data_root)
    if own := [name for name, folder in _names(split) if name not in folder.names()]:
        return (
            faults,
            False,
            f"{own[0]!r} is not niidpart's own, and code that a file names is not run",
        )
    if data is None:
        try:
            data = open_data(split, data_root)
        except (OSError, ValueError) as error:
            return faults, False, str(error)
    return faults + _compare(split, data), True, ""


def _imported(
    split: FederatedSplit, faults: list[Fault], data: Data | None, data_root: str | Path | None
) -> tuple[list[Fault], bool, str]:
    """Rules 60 to 62 of a split that another program made, where its data is found."""
    why_not = "its rows were imported, and nothing says how they were drawn"
    try:
        data = open_data(split, data_root) if data is None else data
    except (OSError, ValueError) as error:
        return faults, False, f"{why_not}; nor was its data looked at: {error}"
    return (
        faults + (source_faults(split, data) or _miscounted(split, data)),
        False,
        f"{why_not}; its data and its counts are right",
    )


def _names(split: FederatedSplit) -> list[tuple[str, Registry]]:
    """What deriving the split would run, each with the folder that it has to be in."""
    return [
        (split.recipe.strategy, STRATEGIES),
        *((t.name, TRANSFORMS) for t in split.recipe.transforms),
    ]


def _compare(split: FederatedSplit, data: Data) -> list[Fault]:
    """Rules 60 to 64."""
    faults = source_faults(split, data)
    if faults:
        return faults
    faults = _miscounted(split, data)
    try:
        if complete_recipe(split.recipe) != split.recipe:
            raise UsageError("it does not say all options")
        anew = replace(
            derive(data, split.recipe), source=split.source
        )  # the same data, however it was come by
    except (ValueError, ArithmeticError) as error:
        return [*faults, Fault(64, f"the recipe cannot be carried out: {error}")]
    faults += [
        Fault(63, f"/draws/{name} is not what the seed gives")
        for name in sorted(_different(anew, split))
    ]
    if anew.digest != split.digest:
        how = (
            "the stored draws give it, the seed does not"
            if _replayed(split, data) == split.digest
            else "neither the seed nor the stored draws give it"
        )
        faults.append(
            Fault(
                64,
                f"the recipe gives the split {anew.digest[:12]}..., the file holds {split.digest[:12]}...: {how}",
            )
        )
    return faults


def _miscounted(split: FederatedSplit, data: Data) -> list[Fault]:
    """Rule 62."""
    faults, K = [], len(split.source.class_names)
    for name, part in split.parts.items():
        cells = np.repeat(np.arange(split.n_parties) * K, part.sizes) + data.labels[part.indices]
        if (np.bincount(cells, minlength=part.counts.size) != part.counts.reshape(-1)).any():
            faults.append(Fault(62, f"/{name}/counts differs from the labels of the examples"))
    return faults


def _different(anew: FederatedSplit, split: FederatedSplit) -> set[str]:
    """Names of draws that are in one and not in the other, or differ. Empty draws are not stored."""
    mine, theirs = (
        {(k, digest_array(v)) for k, v in s.draws.items() if v.size} for s in (anew, split)
    )
    return {name for name, _ in mine ^ theirs}


def _replayed(split: FederatedSplit, data: Data) -> str:
    """The digest of the split that the stored draws give, "" where they make no sense."""
    try:
        with np.errstate(all="ignore"):
            return replace(
                derive(data, split.recipe, given=split.draws), source=split.source
            ).digest
    except (
        ValueError,
        IndexError,
        TypeError,
        ArithmeticError,
    ):  # stored draws are a stranger's numbers
        return ""


def _skew(split: FederatedSplit, stored: StoredSkew | None) -> list[Fault]:
    """Rule 65. Measures of another version are passed over: they may be defined otherwise."""
    if stored is None:
        return []
    skew = split.skew
    mine, theirs, wrong = skew.to_json(), stored.table, []
    if mine["map_beta"]["version"] == theirs["map_beta"]["version"]:
        if not np.allclose(stored.map_beta, skew.map_beta, rtol=_CLOSE, atol=0):
            wrong.append("map_beta of each party")
        wrong += _unlike("map_beta", theirs["map_beta"], mine["map_beta"])
    if stored.table.get("n_empty") != mine["n_empty"]:
        wrong.append("n_empty")
    theirs_of, mine_of = (
        {(m["name"], m.get("form")): m for m in table["measures"]} for table in (theirs, mine)
    )
    if len(theirs_of) < len(theirs["measures"]):
        wrong.append("a measure that is stated twice")
    for key, measure in mine_of.items():
        if key in theirs_of and theirs_of[key]["version"] == measure["version"]:
            wrong += _unlike(" ".join(filter(None, key)), theirs_of[key], measure)
    return (
        [Fault(65, f"/skew does not follow from the counts: {', '.join(wrong[:8])}")]
        if wrong
        else []
    )


def _unlike(name: str, stated: JSON, right: JSON) -> list[str]:
    """Names of numbers and words that differ."""
    return [
        f"{name}.{key}" for key, value in right.items() if not _alike(key, stated.get(key), value)
    ]


def _alike(key: str, stated: Any, right: Any) -> bool:
    if not isinstance(right, float):
        return bool(stated == right)
    if type(stated) not in (int, float):
        return False
    drawn = key in ("iid", "corrected", "low", "high")
    return math.isclose(stated, right, rel_tol=_CLOSE, abs_tol=_DRAWN if drawn else 1e-12)
