"""Who holds which rows, as a digest by which published splits are found."""

import hashlib
from collections.abc import Mapping

import numpy as np

from ..arithmetic.rng import Ints
from ..splits.view import RowIds
from .records import PublishedSplit, load_records


def find_by_digests(digests: Mapping[str, str]) -> list[PublishedSplit]:
    """Return the published splits whose parts have these digests. digests: of each part."""
    records = load_records().values()
    return [record for record in records if record.digests.items() <= digests.items()]


def digest_parts(parts: Mapping[str, tuple[Ints, RowIds]], n_parties: int) -> dict[str, str]:
    """Return the digest of each part's rows."""
    return {name: digest_rows(party, row, n_parties) for name, (party, row) in parts.items()}


def digest_rows(party: Ints, row: RowIds, n_parties: int) -> str:
    """Return the digest of who holds which rows: of a sound split that of its part.

    Parameters
    ----------
    party, row : arrays of int [n]
        Pairs in any order; a pair may stand there twice.
    n_parties : int

    Returns
    -------
    str
        sha256 over where each party begins, then the rows, ascending within each party.

    Examples
    --------
    >>> import niidpart
    >>> part = niidpart.make([0, 1] * 50, "homo", n_parties=2).train
    >>> digest_rows(np.repeat([0, 1], part.sizes), part.indices, 2) == part.digest
    True
    """
    order = np.lexsort((row, party))
    sizes = np.bincount(party, minlength=n_parties)
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    state = hashlib.sha256(starts.astype("<i8").tobytes())
    state.update(row[order].astype("<i8").tobytes())
    return state.hexdigest()
