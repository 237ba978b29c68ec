"""The compiled code for this processor: what a wheel brought, else made at its first use.

What is made here is kept in the user's cache.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import os
import platform
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from niidpart.errors import UsageError
from niidpart.temporaries import temporary_folder

from . import compiling
from .arguments import list_layout
from .compiling import BASELINE, CompilerFault, compile_library, list_instruction_sets, name_library

_NEEDED = "engine native needs a C++ compiler here, or a wheel of niidpart for x86-64 Linux"
_INSTEAD = "use --engine processes, which needs no compiler"


class Build(NamedTuple):
    """A library of compiled code.

    digest: the beginning of the sha256 of the file: two runs that have the same one had the same
    code, and the same bits of it. instructions: the set that it was made for.
    """

    file: Path
    digest: str
    instructions: str


def find_build() -> Build:
    """Return the compiled code for this processor; UsageError where there is none to be had."""
    instructions = find_instructions()
    file = compiling.SHIPPED / name_library(instructions)
    if not file.exists():
        file = build_library(*find_compiler())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return Build(file, digest[:16], instructions)


def find_instructions() -> str:
    """Return the widest instruction set that this processor has, of those that there is code for.

    It is what torch found for its own kernels. So ATEN_CPU_CAPABILITY, which makes torch do with
    less, makes this code do with as much.
    """
    found = torch.backends.cpu.get_cpu_capability().lower()
    return found if found in list_instruction_sets() else BASELINE


def load_library(file: Path | None = None) -> ctypes.CDLL:
    """Return the functions of the compiled code; UsageError where there is none, or none loads.

    file: the library, where it is known.
    """
    file = file or find_build().file
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        raise UsageError(
            f"engine native cannot load its compiled code: {error}; "
            f"delete {file}, or set XDG_CACHE_HOME to another folder"
        ) from error
    _require_layout(library, file)
    library.fltrain_train.restype = ctypes.c_int64
    library.fltrain_train.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    library.fltrain_score.restype = ctypes.c_int
    library.fltrain_score.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_int64),
        ctypes.POINTER(ctypes.c_double),
    ]
    library.fltrain_two_sum.restype = None
    library.fltrain_two_sum.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
    return library


def _require_layout(library: ctypes.CDLL, file: Path) -> None:
    """Raise a UsageError where code takes its arguments otherwise: it would read other memory."""
    ours, theirs = list_layout(), None
    find_layout = getattr(library, "fltrain_layout", None)
    if find_layout is not None:
        find_layout.restype = ctypes.POINTER(ctypes.c_int64)
        theirs = find_layout()[: len(ours)]
    if theirs != ours:
        raise UsageError(
            f"engine native cannot use its compiled code: {file} is of another version of fltrain "
            f"(its arguments are laid out as {theirs}, not as {ours}); "
            "delete it, or install fltrain anew"
        )


def find_compiler() -> tuple[list[str], str]:
    """Return the compiler's command and its version; UsageError where none works."""
    try:
        return compiling.find_compiler()
    except CompilerFault as fault:
        raise UsageError(f"{_NEEDED}, and {fault}; {_INSTEAD}") from fault


def build_library(command: list[str], version: str) -> Path:
    """Return the library's file for this processor, made where it is missing.

    Its name is of all that it depends on. It comes into its place whole. Processes that want it at
    the same time wait for the first of them, which makes it.
    """
    instructions = find_instructions()
    machine = f"{platform.system()} {platform.machine()}"  # a home folder may be shared
    folder = _cache_folder() / "niidpart" / "native"
    file = folder / name_library(instructions, made_by=repr((command, version, machine)))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_own(folder)
        if not file.exists():
            with _lock_folder(folder):
                _compile_missing(command, instructions, file)
        _require_own(file)
    except CompilerFault as fault:
        raise UsageError(f"engine native could not be compiled with {fault}; {_INSTEAD}") from fault
    except OSError as error:
        raise UsageError(
            f"engine native keeps what it compiles in {folder}, which fails: {error}; "
            "set XDG_CACHE_HOME to another folder"
        ) from error
    return file


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Wait until no other process compiles there. Without locks in the file system, several may."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _compile_missing(command: list[str], instructions: str, file: Path) -> None:
    """Make a library, unless somebody has made it by now."""
    if file.exists():
        return
    with temporary_folder(file, 0o700) as scratch:
        made = scratch / file.name
        compile_library(command, instructions, made)
        made.chmod(0o700)  # whatever the umask: `_require_own` wants it so
        os.replace(made, file)


def _cache_folder() -> Path:
    """Return the user's folder for what can be made again.

    A relative $XDG_CACHE_HOME counts as none, as the XDG specification says.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named
    try:
        return Path.home() / ".cache"
    except RuntimeError as error:  # a user without a name, as in containers
        raise UsageError(
            f"engine native has no folder to keep what it compiles in ({error}); "
            "set XDG_CACHE_HOME to one"
        ) from error


def _require_own(path: Path) -> None:
    """Raise a UsageError where somebody else could have put code: it would run as this user."""
    found = path.stat()
    otherwise = "or set XDG_CACHE_HOME to a folder of your own"
    if found.st_uid != os.geteuid():
        raise UsageError(
            f"engine native loads compiled code from {path}, which belongs to user {found.st_uid} "
            f"and not to you ({os.geteuid()}); delete it, {otherwise}"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"engine native loads compiled code from {path}, which others may write to "
            f"(mode {stat.S_IMODE(found.st_mode):o}); "
            f"delete it, chmod go-w it if all that is there is yours, {otherwise}"
        )
