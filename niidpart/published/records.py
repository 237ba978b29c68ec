"""What is known of a published split, as its file in the folder says."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import UsageError
from ..registry.hints import find_near


@dataclass(frozen=True)
class PublishedFile:
    """Where a file of a published split stands.

    Parameters
    ----------
    repository : str
        Of GitHub, OWNER/NAME.
    commit : str
    path : str
    sha256 : str
        Of the file's bytes, unpacked; "" where code alone makes the split.
    """

    repository: str
    commit: str
    path: str
    sha256: str


@dataclass(frozen=True)
class PublishedSplit:
    """A split that a paper or a library published.

    Parameters
    ----------
    name : str
        The family and the setting, `fedrcl/cifar10-dir0.05`.
    paper : str
        The key of its entry in `niidpart/citing/references.bib`.
    dataset : str
        As niidpart calls it.
    n : int
        Rows of the data set.
    n_parties : int
    rule : str
        In words, with its parameters.
    digests : mapping of str to str
        Of each part, who holds which rows: `niidpart show --json` calls it by the same name.
    command : str
        The `niidpart make` that gives the same rows; "" where there is none.
    skew : mapping of str to float
        Measured on the counts; empty where the classes were not at hand.
    faults : tuple of str
        What `niidpart audit` found.
    places : tuple of PublishedFile
        Where its files stand.

    Examples
    --------
    >>> find_record("fedrcl/cifar10-dir0.05").n_parties
    100
    """

    name: str
    paper: str
    dataset: str
    n: int
    n_parties: int
    rule: str
    digests: Mapping[str, str]
    command: str = ""
    skew: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    places: tuple[PublishedFile, ...] = ()

    @property
    def file_digests(self) -> set[str]:
        """The sha256 of each of its files."""
        return {place.sha256 for place in self.places}

    def is_of(self, dataset: str) -> bool:
        """Return whether it is a split of a data set, or of the same with more known of it.

        Parameters
        ----------
        dataset : str

        Returns
        -------
        bool

        Examples
        --------
        >>> record = find_record("pfllib/mnist-dir0.1")
        >>> record.is_of("mnist-writers"), record.is_of("cifar10")
        (True, False)
        """
        return dataset == self.dataset or dataset.startswith(f"{self.dataset}-")

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON has them.

        Returns
        -------
        dict
        """
        held = {"digests": dict(self.digests), "skew": dict(self.skew)}
        held |= {"places": [asdict(place) for place in self.places]}
        plain = ("name", "paper", "dataset", "n", "n_parties", "rule", "command")
        return {key: getattr(self, key) for key in plain} | held | {"faults": list(self.faults)}


@cache
def load_records() -> dict[str, PublishedSplit]:
    """Return all records by name, sorted.

    Returns
    -------
    dict of str to PublishedSplit

    Examples
    --------
    >>> "fedsam/cifar10-a0.50" in load_records()
    True
    """
    folder = files("niidpart.published").joinpath("records")
    texts = [file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".toml")]
    records = [_read_record(tomllib.loads(text)) for text in texts]
    return {record.name: record for record in sorted(records, key=lambda record: record.name)}


def _read_record(held: dict[str, Any]) -> PublishedSplit:
    places = tuple(PublishedFile(**place) for place in held.pop("places", ()))
    faults = tuple(held.pop("faults", ()))
    return PublishedSplit(**held, places=places, faults=faults)


def list_records() -> list[str]:
    """Return the names of all records.

    Returns
    -------
    list of str

    Examples
    --------
    >>> "fedrcl/cifar10-dir0.05" in list_records()
    True
    """
    return list(load_records())


def find_record(name: str) -> PublishedSplit:
    """Return the record of a name.

    Parameters
    ----------
    name : str

    Returns
    -------
    PublishedSplit

    Raises
    ------
    UsageError
        For a name that is not there; it says which is nearest.

    Examples
    --------
    >>> find_record("fedrcl/cifar10-dir0.05").dataset
    'cifar10'
    """
    records = load_records()
    if name not in records:
        raise UsageError(f"no published split {name!r} is known; {guess_name(name)}")
    return records[name]


def guess_name(name: str) -> str:
    """Return which published splits were meant by a name that is none, and where all are named."""
    records = load_records()
    near = find_near(name, records)
    guess = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"{guess}niidpart registry list names all {len(records)}"
