"""`audit`: what is wrong with a split, and which rule made it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from ..arithmetic.rng import Ints
from ..data import Data
from ..data.of_split import require_data_of
from ..errors import UsageError, require_path, require_type
from ..heterogeneity import Skew, measure
from ..splitfile.reading import read
from ..splits.dealing import measure_skew
from ..splits.split import FederatedSplit
from .examples import find_example_faults
from .exhaustion import find_exhaustion
from .explanation import CANNOT_TELL, Explanation, explain
from .findings import Finding
from .parties import find_party_faults
from .redraws import find_redraw
from .rows import find_row_faults
from .subject import AuditSubject, describe_split, is_split_file, read_published
from .which_data import advise_on_data, find_other_data, find_records, tell_data


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found in a split.

    Parameters
    ----------
    name : str
        The file.
    described : str
        What it is, in words.
    n_parties, n_rows : int
        Parties, and pairs of a party and a row.
    n : int or None
        Rows of the data set, None where nobody says.
    findings : tuple of Finding
        The faults first.
    explanations : tuple of Explanation
        How rules explain the counts, the best one first; () where no class is known.
    counts : array of int [P, K] or None
        Examples of each class at each party, over all parts.
    class_names : tuple of str
    sizes : array of int [P]
        Rows of each party, over all parts.
    measure_skew : callable or None
        What gives `skew`.
    published : tuple of str
        The published splits whose rows these are, by their names in the registry.
    told_by : str
        What says of which data the file is: the "file" itself, the "registry", the "classes" that
        it states, the "skew" of its classes in the data at hand; "" where nothing does.
    advice : str
        Which options say more of a file that was looked at without its data set; else "".

    Examples
    --------
    >>> import niidpart
    >>> found = audit(niidpart.make(niidpart.load("digits"), "homo", n_parties=5))
    >>> found.exit_code, found.findings, found.explanations[0].rule
    (0, (), 'homo')
    """

    name: str
    described: str
    n_parties: int
    n_rows: int
    n: int | None
    findings: tuple[Finding, ...]
    explanations: tuple[Explanation, ...]
    counts: Ints | None
    class_names: tuple[str, ...]
    sizes: Ints
    measure_skew: Callable[[], Skew] | None
    published: tuple[str, ...] = ()
    told_by: str = "file"
    advice: str = ""

    @cached_property
    def skew(self) -> Skew | None:
        """How skewed it is: of a split file its training part, else all rows; None where no class
        is known. Measured when it is first asked for."""
        return None if self.measure_skew is None else self.measure_skew()

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that make results wrong or incomparable."""
        return tuple(found for found in self.findings if found.level == "fault")

    @property
    def exit_code(self) -> int:
        """1 with a fault; else 0, or 3 where nothing says of which data the file is."""
        if self.faults:
            return 1
        return 0 if self.told_by else 3

    @property
    def verdict(self) -> str:
        """All in one line."""
        n_notes = len(self.findings) - len(self.faults)
        said = "sound" if self.told_by else "nothing wrong in itself"
        if self.faults:
            kinds = ", ".join(found.kind for found in self.faults)
            said = f"faulty ({kinds})"
        notes = f", {n_notes} to know of" if n_notes else ""
        known = f"; published as {' and '.join(self.published)}" if self.published else ""
        unknown = "" if self.told_by else "; of which data it is cannot be told"
        return f"{said}{notes}{known}{unknown}; {self._tell_rule()}"

    def _tell_rule(self) -> str:
        if not self.explanations:
            return "no class is known, so no rule can be told"
        best, *others = self.explanations
        near = [other.rule for other in others if other.behind < CANNOT_TELL and not other.is_limit]
        as_well = f", {' and '.join(near)} explaining it as well" if near else ""
        return f"best explained by {best.describe()}{as_well}"

    def to_json(self) -> dict[str, Any]:
        """Return all but the counts, as JSON has it.

        Returns
        -------
        dict

        Examples
        --------
        >>> import niidpart
        >>> split = niidpart.make(niidpart.load("digits"), "homo", n_parties=5)
        >>> audit(split).to_json()["parties"]
        5
        """
        classes = None if self.counts is None else np.count_nonzero(self.counts, axis=1)
        return {
            "file": self.name,
            "what": self.described,
            "verdict": self.verdict,
            "exit": self.exit_code,
            "published": list(self.published),
            "told_by": self.told_by,
            "advice": self.advice,
            "parties": self.n_parties,
            "rows": self.n_rows,
            "examples": self.n,
            "sizes": _summarise(self.sizes),
            "classes_per_party": None if classes is None else _summarise(classes),
            "findings": [found.to_json() for found in self.findings],
            "explanations": [one.to_json() for one in self.explanations],
            "skew": None if self.skew is None else self.skew.to_json(),
        }


def audit(
    subject: str | Path | FederatedSplit,
    *,
    data: Data | None = None,
    format: str | None = None,
    **options: Any,
) -> Audit:
    """Return what is wrong with a split, and which rule made it.

    Parameters
    ----------
    subject : str, Path or FederatedSplit
        A split file, a file or folder of another program, or a split.
    data : Data, optional
        The data set. Without it nothing is said of equal examples, and of others' files nothing of
        classes, unless they say these themselves.
    format : str, optional
        Of another program's file; else it is recognised.
    **options
        The format's own.

    Returns
    -------
    Audit

    Raises
    ------
    UsageError
        For what cannot be asked.
    FileFault
        The file cannot be read at all.

    Examples
    --------
    >>> import niidpart
    >>> import numpy as np
    >>> split = niidpart.make(np.arange(6000) % 10, "dir", beta=0.1, n_parties=20)
    >>> audit(split).explanations[0].rule
    'dir'
    """
    if data is not None:
        require_type("data", data, Data, "a data set (niidpart.load, niidpart.from_arrays)")
    if isinstance(subject, FederatedSplit):
        return _audit_split("split", subject, data)
    require_path("the file", subject)
    path = Path(subject)
    if format is None and is_split_file(path):
        if options:
            raise UsageError(f"{path} is a split file; it takes no options of a format")
        return _audit_split(str(path), read(path), data)
    found = read_published(path, format, data, options)
    if found.counts is None:
        return _build(found, None)
    return _build(found, partial(measure, found.counts))


def _audit_split(name: str, split: FederatedSplit, data: Data | None) -> Audit:
    if data is not None:
        require_data_of(split, data)
    return _build(describe_split(name, split, data), partial(measure_skew, split))


def _build(subject: AuditSubject, measure_it: Callable[[], Skew] | None) -> Audit:
    records = find_records(subject)
    if subject.n is None and records:
        subject = subject._replace(n=records[0].n)
    explained = [] if subject.counts is None else explain(subject.counts)
    found = [
        *find_other_data(subject, records),
        *find_row_faults(subject),
        *find_example_faults(subject),
        *find_party_faults(subject),
    ]
    if subject.counts is not None and not subject.has_recipe:
        found += find_redraw(subject.counts, explained)
        found += find_exhaustion(subject.counts, explained)
    found.sort(key=lambda one: one.level != "fault")  # stable: the faults first
    told_by = tell_data(subject, records, explained)
    return Audit(
        name=subject.name,
        described=subject.described,
        n_parties=subject.n_parties,
        n_rows=subject.n_rows,
        n=subject.n,
        findings=tuple(found),
        explanations=tuple(explained),
        counts=subject.counts,
        class_names=subject.class_names,
        sizes=subject.sizes,
        measure_skew=measure_it,
        published=tuple(record.name for record in records),
        told_by=told_by,
        advice=advise_on_data(subject, records, told_by),
    )


def _summarise(values: Ints) -> Mapping[str, float]:
    return {
        "min": int(values.min()),
        "median": float(np.median(values)),
        "mean": float(values.mean()),
        "max": int(values.max()),
    }
