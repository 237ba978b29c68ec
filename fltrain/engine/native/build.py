"""The native step, compiled at its first use and kept in the user's cache."""

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from niidpart.errors import UsageError

_SOURCES = ("step.cpp", "kernels.h")
_FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
    "-shared",
    "-fPIC",
)
_INSTEAD = "; use --engine processes, which needs no compiler"


def load_library() -> ctypes.CDLL:
    """The compiled step for this processor. ValueError where it cannot be made."""
    file = build_library(*find_compiler())
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        raise UsageError(
            f"engine native cannot load what it compiled: {error}; delete it or set XDG_CACHE_HOME to another folder"
        ) from error
    library.fltrain_train.restype = ctypes.c_int
    library.fltrain_train.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_double)]
    library.fltrain_score.restype = ctypes.c_int
    library.fltrain_score.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_int64),
        ctypes.POINTER(ctypes.c_double),
    ]
    return library


def find_compiler() -> tuple[list[str], str]:
    """The command and its version: $CXX where that is set, else the first of c++, g++ and clang++ that there is. ValueError where none works."""
    asked = os.environ.get("CXX", "")
    command = shlex.split(asked) or next(
        ([found] for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), []
    )
    if not command:
        raise UsageError(
            f"engine native needs a C++ compiler, and there is neither $CXX nor c++, g++ or clang++{_INSTEAD}"
        )
    try:
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(
            f"engine native needs a C++ compiler, and {_named(command)} cannot be run ({error.strerror}){_INSTEAD}"
        ) from error
    if said.returncode or not said.stdout:
        raise UsageError(
            f"engine native needs a C++ compiler, and {_named(command)} gives no version (exit code {said.returncode}){_INSTEAD}"
        )
    return command, said.stdout


def build_library(command: list[str], version: str) -> Path:
    """The library's file, made where it is missing. Its name is of all that it depends on; it comes into its place whole, whoever else makes it."""
    here = Path(__file__).parent
    parts = [
        *((here / name).read_bytes() for name in _SOURCES),
        repr((command, _FLAGS)).encode(),
        version.encode(),
        _processor().encode(),
    ]
    key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    folder = _cache() / "niidpart" / "native"
    file = folder / f"step-{key[:32]}.so"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _ours(folder)
        if not file.exists():
            with tempfile.TemporaryDirectory(dir=folder) as made:
                _compile(command, here / _SOURCES[0], Path(made) / file.name)
                (Path(made) / file.name).chmod(0o700)  # whatever the umask: `_ours` wants it so
                os.replace(Path(made) / file.name, file)
        _ours(file)
    except OSError as error:
        raise UsageError(
            f"engine native keeps what it compiles in {folder}, which fails: {error}; set XDG_CACHE_HOME to another folder"
        ) from error
    return file


def _cache() -> Path:
    """The user's folder for what can be made again. A relative $XDG_CACHE_HOME counts as none, as the XDG specification says."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"


def _ours(path: Path) -> None:
    """ValueError where somebody else could have put code there: it would run as this user."""
    found = path.stat()
    otherwise = "or set XDG_CACHE_HOME to a folder of your own"
    if found.st_uid != os.geteuid():
        raise UsageError(
            f"engine native loads compiled code from {path}, which belongs to user {found.st_uid} and not to you ({os.geteuid()}); "
            f"delete it, {otherwise}"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"engine native loads compiled code from {path}, which others may write to (mode {stat.S_IMODE(found.st_mode):o}); "
            f"delete it, chmod go-w it if all that is there is yours, {otherwise}"
        )


def _compile(command: list[str], source: Path, to: Path) -> None:
    said = subprocess.run(
        [*command, *_FLAGS, str(source), "-o", str(to)], capture_output=True, text=True, check=False
    )
    if said.returncode or not to.exists():
        first = next(
            (line for line in said.stderr.splitlines() if "error" in line),
            said.stderr.strip()[:200],
        )
        raise UsageError(
            f"engine native could not be compiled with {_named(command)} (exit code {said.returncode}): {first}{_INSTEAD}"
        )


def _named(command: list[str]) -> str:
    return f"{shlex.join(command)} ($CXX)" if os.environ.get("CXX") else shlex.join(command)


@functools.cache
def _processor() -> str:
    """What the processor can do, as far as the system says so: a home folder may be shared by machines that differ."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    flags = next(
        (line for line in lines if line.startswith(("flags", "Features"))), platform.processor()
    )
    return f"{platform.system()} {platform.machine()} {flags}"
