"""The head of a checkpoint: what its tensors are, and the digests that it stands under."""

from dataclasses import asdict, dataclass
from typing import Any, get_type_hints

from safetensors import SafetensorError

from niidpart.splits.recipe import JSON

from ..disk.plain_folder import PlainFolder, RunError
from ..disk.sealed import Sealed, read_sealed, seal_text
from .names import Place

# What reading a checkpoint that is not whole can raise.
DAMAGE = (OSError, ValueError, LookupError, TypeError, RuntimeError, SafetensorError)

FORMAT = 2  # of a head; that of earlier versions, 1, is not stated


@dataclass(frozen=True)
class Head:
    """What stands in the JSON of a checkpoint.

    round, kind: its number; "base" for a whole state, "rows" for the rows of parties that changed
    since the checkpoint before, and all else. names: of the tensors, in the order of the state;
    empty: the paths of its empty trees. bytes, sha256: of the file of the tensors. before: the
    digest of the head that changed rows stand on, "" for a base. config, metrics: the digests of
    the configuration and of the round's line of the metrics. state: that of the whole state.

    A head of an earlier version has "" for the digests that it does not state.
    """

    round: int
    kind: str
    names: list[str]
    empty: list[str]
    bytes: int | None
    sha256: str
    before: str
    config: str
    metrics: str
    state: str

    @property
    def place(self) -> Place:
        """The checkpoint's place among others."""
        return Place(self.round, is_base=self.kind == "base")


def write_head(folder: PlainFolder, head: Head) -> str:
    """Write a head, with which its checkpoint counts. Return its digest."""
    text, digest = seal_head(head)
    folder.write(head.place.head, text)
    return digest


def seal_head(head: Head) -> tuple[bytes, str]:
    """Return the text of a head, and its digest."""
    return seal_text({"format": FORMAT} | asdict(head))


def read_head(folder: PlainFolder, place: Place) -> tuple[Head, str]:
    """Return the head of a checkpoint and its digest. RunError where it is not as it must be."""
    sealed = read_sealed(folder, place.head)
    path = folder.path / place.head
    head = _parse(sealed, str(path))
    if head.place != place:
        raise RunError(f"{path} says round {head.round}, {head.kind}, which its file's name is not")
    return head, sealed.digest


def _parse(sealed: Sealed, file: str) -> Head:
    value = dict(sealed.value)
    form = value.pop("format", 1)
    if form == 1 and not sealed.digest:
        value = _complete_old(value)
    elif form != FORMAT or type(form) is not int:
        raise RunError(f"{file} has the format {form!r}, this fltrain reads 1 and {FORMAT}")
    elif not sealed.digest:
        raise RunError(f"{file} is damaged: its digest is gone")
    kinds = get_type_hints(Head)
    wrong = set(value) ^ set(kinds)
    for name, kind in kinds.items():
        if name in value and not _suits(value[name], kind):
            wrong.add(name)
    if wrong:
        names = ", ".join(sorted(map(ascii, wrong)))
        raise RunError(f"{file} is damaged: it is no head of a checkpoint, by its {names}")
    return Head(**value)


def _complete_old(value: JSON) -> JSON:
    """Return what an earlier version wrote, with what it did not know."""
    unknown = dict.fromkeys(("before", "config", "metrics", "state"), "")
    known = {name: value.get(name) for name in ("round", "sha256", "names", "empty")}
    return known | unknown | {"kind": "base", "bytes": None}


def _suits(value: object, kind: Any) -> bool:
    """Return whether a value is of the type of a field."""
    if kind == list[str]:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind == int | None:
        return value is None or (type(value) is int and value >= 0)
    return type(value) is kind
