"""Which files are in the folder of a package: the names of a registry's entries."""

import functools
import importlib.util
import os
import pkgutil


def list_names(package: str) -> list[str]:
    """Return the entries of a folder, without importing it.

    Parameters
    ----------
    package : str
        The dotted name of the folder.

    Returns
    -------
    list of str
        Its files without those that begin with `_`, sorted; `_` becomes `-`.

    Examples
    --------
    >>> list_names("niidpart.recipes")[:2]
    ['fedcd', 'fedrcl']
    """
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    names = []
    for folder in folders or ():
        names += _list_folder(folder, _read_time_of_change(folder))
    return sorted(names)


@functools.lru_cache(maxsize=64)
def _list_folder(folder: str, changed: int) -> list[str]:
    """Return the names in one folder. Each check of a file asks for them, so they are kept."""
    names = []
    for module in pkgutil.iter_modules([folder]):
        if not module.name.startswith("_"):
            names.append(module.name.replace("_", "-"))
    return names


def _read_time_of_change(folder: str) -> int:
    """Return when a folder was changed, in nanoseconds; 0 for one inside an archive."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
