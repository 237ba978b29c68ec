"""Which data sets are known by name: where each is looked for, if it is there, how it is had."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import UsageError
from .credits import find_credit
from .loading import SOURCES, DataSource

__all__ = ["KnownData", "find_known", "list_known"]

Presence = Literal["always there", "found", "missing", "not looked for"]


@dataclass(frozen=True)
class KnownData:
    """A data set that is known by name.

    Parameters
    ----------
    name, about, licence : str
        About: the first line of its help. Licence: "none stated" where its authors say nothing.
    state : str
        "always there" in the package; "found" or "missing" below the root; "not looked for" where
        no root was said.
    folders : tuple of path
        That are looked at, in this order.
    wanted : tuple of str
        What has to lie in one of them, form by form.
    found : tuple of path
        What lies there.
    get : str
        The command that gets it, "" where nothing is to be had.
    """

    name: str
    about: str
    licence: str
    state: Presence
    folders: tuple[Path, ...] = ()
    wanted: tuple[str, ...] = ()
    found: tuple[Path, ...] = ()
    get: str = ""


def list_known(root: str | Path | None = None) -> list[KnownData]:
    """Return all data sets that are known by name, files of one's own apart.

    Parameters
    ----------
    root : path, optional
        The folder that is looked at, as `--data-root` has it; None looks nowhere.

    Returns
    -------
    list of KnownData

    Examples
    --------
    >>> {known.name: known.state for known in list_known()}["digits"]
    'always there'
    """
    records = {name: SOURCES.record(name) for name in SOURCES.names()}
    named = [name for name, source in records.items() if _has_place(source)]
    return [_describe(name, records[name], root) for name in named]


def find_known(name: str, root: str | Path | None = None) -> KnownData:
    """Return one of them.

    Parameters
    ----------
    name : str
    root : path, optional
        As of `list_known`.

    Returns
    -------
    KnownData

    Raises
    ------
    UsageError
        For a name that is none, and for files of one's own.

    Examples
    --------
    >>> find_known("usps", "data").get
    'niidpart data get usps --root data'
    """
    source = SOURCES.record(name)
    if not _has_place(source):
        what = f"{name!r} reads files of your own, which lie where you say"
        raise UsageError(f"{what}; niidpart make --help has its options")
    return _describe(name, source, root)


def _has_place(source: DataSource) -> bool:
    return source.places is not None or source.is_here


def _describe(name: str, source: DataSource, root: str | Path | None) -> KnownData:
    about, credit = SOURCES.summary(name), find_credit(name)
    licence = (credit.terms or credit.licence) if credit else "made, not collected"
    if licence == "unknown":
        licence = "none stated"
    places = source.places
    if places is None:
        return KnownData(name, about, licence, "always there")
    shown_root = "DIR" if root is None else root
    found = None if root is None else places.find(root)
    state: Presence = "missing" if found is None else "found"
    if root is None:
        state = "not looked for"
    return KnownData(
        name=name,
        about=about,
        licence=licence,
        state=state,
        folders=tuple(places.list_folders(shown_root)),
        wanted=tuple(places.list_wanted()),
        found=tuple(found or ()),
        get=places.spell_get(shown_root),
    )
