"""The splits of a page: found beside the runs, and told as `niidpart report` tells them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import niidpart
from niidpart.disk.progress import tell
from niidpart.report.heat_map import MOST_CELLS
from niidpart.report.skew_rows import find_headline
from niidpart.report.split_story import SplitStory, tell_split

from ..evidence.records import RunRecord
from ..runs.folder import SPLIT
from ..studies.folder.study_folder import StudyFolder

_MOST_TOLD = 40  # splits that are told in full


@dataclass(frozen=True)
class SplitLine:
    """A split in the overview. skew: of the headline measure, with its interval; None for none."""

    digest: str
    title: str
    beta: float
    skew: float | None
    low: float | None
    high: float | None
    n_runs: int


@dataclass(frozen=True)
class SplitsStory:
    """The splits of a page.

    lines: all that were found. told: those that are told in full. missing: digests of those whose
    files are not there. sizes: training examples of each party, by how the digest begins.
    """

    lines: Sequence[SplitLine]
    told: Sequence[SplitStory]
    missing: Sequence[str]
    sizes: Mapping[str, Sequence[int]]


def tell_splits(records: Sequence[RunRecord], study: StudyFolder | None) -> SplitsStory:
    """Return the splits of some runs. SplitError for a damaged file."""
    n_runs = Counter(record.split for record in records)
    lines, missing, sizes = [], [], {}
    told: list[SplitStory] = []
    room = MOST_CELLS
    for digest, n in n_runs.items():
        place = _find_file(digest, records, study)
        if place is None:
            missing.append(digest)
            continue
        split = niidpart.read(place)
        line = _describe_line(split, n)
        lines.append(line)
        short = digest[:12]
        sizes[short] = split.train.sizes.tolist()
        if len(told) < _MOST_TOLD:
            story = tell_split(split, f"{short}.h5", most_cells=room)
            told.append(story)
            room -= _count_cells(story)
        tell("splits measured", len(lines), len(n_runs))
    return SplitsStory(lines, told, missing, sizes)


def _find_file(digest: str, records: Sequence[RunRecord], study: StudyFolder | None) -> Path | None:
    """Return where a split lies: in the study, or the copy in one of its runs."""
    if study is not None:
        place = study.find_split(digest)
        if place.is_file():
            return place
    for record in records:
        if record.split != digest or record.folder is None:
            continue
        copy = record.folder / SPLIT
        if copy.is_file() and not copy.is_symlink():
            return copy
    return None


def _describe_line(split: niidpart.FederatedSplit, n_runs: int) -> SplitLine:
    line = SplitLine(
        digest=split.digest,
        title=niidpart.plot.compose_title(split),
        beta=split.skew.map_beta_overall,
        skew=None,
        low=None,
        high=None,
        n_runs=n_runs,
    )
    headline = find_headline(split.skew)
    if headline is None:
        return line
    return replace(
        line,
        skew=headline.corrected,
        low=headline.low,
        high=headline.high,
    )


def _count_cells(story: SplitStory) -> int:
    picture = story.heat_map
    if picture is None:
        return 0
    return len(picture.rows) * len(picture.classes)
