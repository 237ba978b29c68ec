"""Of which data a file is: what says so, and whether that is the data at hand."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..data import SOURCES
from ..formats import Imported
from ..interop.import_checks import describe_other_source
from ..interop.importing import IMPORTERS
from ..published.records import PublishedSplit, load_records
from ..published.rows import digest_parts, find_by_digests
from .explanation import CANNOT_TELL, Explanation, explain
from .findings import Finding
from .subject import AuditSubject, describe_held

_FIXED = ("homo", "quantity")  # rules that look at no class
_MOST_TIMES = 2  # that a published split holds as many rows as its data set has
_IN_RUNS = 0.5  # of the rows stand at the party of the row before: dealt in the data set's order


def find_records(subject: AuditSubject) -> list[PublishedSplit]:
    """Return the published splits whose rows these are."""
    for record in load_records().values():
        is_as_large = subject.n_rows <= _MOST_TIMES * record.n
        if is_as_large and record.n_parties == subject.n_parties:
            return find_by_digests(digest_parts(subject.parts, subject.n_parties))
    return []


def find_other_data(subject: AuditSubject, records: Sequence[PublishedSplit]) -> Iterator[Finding]:
    """Yield that the file is of other data than that at hand, where something says so."""
    data, stated = subject.data, subject.stated_source
    if data is not None and stated:
        other = describe_other_source(stated, data)
        if other:
            text = f"the folder says that it is {other}"
            yield Finding("other-data", "fault", text, subject.n_rows)
    if subject.has_recipe or not records or not subject.data_name:
        return
    if not any(record.is_of(subject.data_name) for record in records):
        names = " and ".join(record.name for record in records)
        text = (
            f"these rows are published as {names}, a split of {records[0].dataset}; "
            f"the data at hand is {subject.data_name!r}"
        )
        yield Finding("other-data", "fault", text, subject.n_rows)


def tell_data(
    subject: AuditSubject,
    records: Sequence[PublishedSplit],
    explained: Sequence[Explanation],
) -> str:
    """Return what says of which data the rows are, "" where nothing does.

    Numbers of rows alone are of any data set that has as many. Under the labels of other data they
    look as if they had been dealt without a look at the classes: a split that is skewed by classes
    is of these.
    """
    if subject.names_data:
        return "file"
    if records:
        return "registry"
    if subject.data is None:
        return ""
    if subject.says_classes and not subject.stated_wrong:
        return "classes"
    if _is_skewed(explained) and not _is_in_order(subject):
        return "skew"
    return ""


def tell_data_of(path: Path, format: str, held: Imported) -> str:
    """Return what `tell_data` does, of what a format has read in another program's file."""
    if not IMPORTERS.record(format).read_needs_data:
        return "file"  # it is the data set itself
    subject = describe_held(path, format, format, held)
    records = find_records(subject)
    told = tell_data(subject, records, ())
    if told or subject.counts is None:
        return told
    return tell_data(subject, records, explain(subject.counts))


def advise_on_data(subject: AuditSubject, records: Sequence[PublishedSplit], told_by: str) -> str:
    """Return which options say more of a file that is looked at without its data set, "" if none.

    On the command line, since it is there that files are looked at before they are imported.
    """
    if subject.data is not None or (subject.counts is not None and told_by):
        return ""
    names = list(dict.fromkeys(record.dataset for record in records))
    stated = subject.stated_source.get("name")
    if not names and stated in SOURCES.names():
        names = [str(stated)]
    asked = f"--dataset {names[0] if len(names) == 1 else 'NAME'} --data-root DIR"
    if any("--pool" in record.command for record in records):
        asked += " --pool"
    meant = f", NAME being {' or '.join(names)}" if len(names) > 1 else ""
    if not names:
        meant = ", NAME being the data set that its maker used"
    if subject.counts is None:
        return f"add {asked}{meant}: with its labels classes are counted, rule and skew are told"
    return f"add {asked}{meant}: the classes that the file says are compared with its labels"


def _is_skewed(explained: Sequence[Explanation]) -> bool:
    """Return whether no rule that looks at no class explains the counts about as well."""
    if not explained:
        return False
    blind = [one for one in explained if one.rule in _FIXED or one.is_limit]
    return all(one.behind > CANNOT_TELL for one in blind)


def _is_in_order(subject: AuditSubject) -> bool:
    """Return whether parties hold runs of rows: where the data set is sorted by class, those of
    other data are skewed too."""
    assert subject.n is not None  # the data set is at hand
    owner = np.full(subject.n, -1, np.int64)
    for party, row in subject.parts.values():
        is_there = (row >= 0) & (row < subject.n)
        owner[row[is_there]] = party[is_there]
    is_held = (owner[1:] >= 0) & (owner[:-1] >= 0)
    n_same = np.count_nonzero(is_held & (owner[1:] == owner[:-1]))
    return bool(n_same > _IN_RUNS * np.count_nonzero(is_held))
