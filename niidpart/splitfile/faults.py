"""What is wrong with a split file: broken rules of docs/format.md, by their number."""

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ..errors import FileFault

DAMAGE = (
    OSError,
    RuntimeError,
    LookupError,
    ValueError,
    TypeError,
)  # what h5py raises where a file's structure is damaged


@dataclass(frozen=True)
class Fault:
    """A broken rule of docs/format.md."""

    rule: int
    message: str

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.message}"


class SplitError(FileFault):
    """A file that is no valid split. path: the file; faults: the broken rules, at least one."""

    def __init__(self, path: str | Path, faults: list[Fault]):
        self.path, self.faults = Path(path), faults
        lines = [str(f) for f in faults]
        super().__init__(
            f"{path} is no valid split file (docs/format.md): "
            + ("; ".join(lines) if len(lines) < 3 else "\n  " + "\n  ".join(lines))
        )


class Refused(Exception):
    """A rule so broken that nothing more of the file is looked at. Never leaves niidpart: `SplitError` says it with the path."""

    def __init__(self, rule: int, message: str):
        super().__init__(message)
        self.fault = Fault(rule, message)


def refuse(rule: int, message: str) -> NoReturn:
    raise Refused(rule, message)


def first_line(error: BaseException) -> str:
    """The start of a library's message, for ours."""
    return str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
