"""The compiled code, made at its first use and kept in the user's cache."""

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

from niidpart.errors import UsageError
from niidpart.temporaries import temporary_folder

# the first is what is compiled
_SOURCES = ("step.cpp", "updates.h", "sums.h", "layers.h", "kernels.h", "products.h")
_FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    # no flag that lets the compiler reorder sums: errno and traps alone are given up
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
    "-shared",
    "-fPIC",
)
_COMPILERS = ("c++", "g++", "clang++")
_NEEDED = "engine native needs a C++ compiler"
_INSTEAD = "; use --engine processes, which needs no compiler"


def load_library() -> ctypes.CDLL:
    """Return the compiled code for this processor; UsageError where it cannot be made."""
    file = build_library(*find_compiler())
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        raise UsageError(
            f"engine native cannot load what it compiled: {error}; "
            "delete it or set XDG_CACHE_HOME to another folder"
        ) from error
    library.fltrain_train.restype = ctypes.c_int
    library.fltrain_train.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_double)]
    library.fltrain_score.restype = ctypes.c_int
    library.fltrain_score.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_int64),
        ctypes.POINTER(ctypes.c_double),
    ]
    library.fltrain_two_sum.restype = None
    library.fltrain_two_sum.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
    return library


def find_compiler() -> tuple[list[str], str]:
    """Return the compiler's command and its version; UsageError where none works.

    $CXX where that is set, else the first of c++, g++ and clang++ that there is.
    """
    command = shlex.split(os.environ.get("CXX", ""))
    if not command:
        found = [path for path in map(shutil.which, _COMPILERS) if path]
        if not found:
            raise UsageError(
                f"{_NEEDED}, and there is neither $CXX nor c++, g++ or clang++{_INSTEAD}"
            )
        command = found[:1]
    try:
        answer = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise UsageError(
            f"{_NEEDED}, and {_describe(command)} cannot be run ({error.strerror}){_INSTEAD}"
        ) from error
    if answer.returncode or not answer.stdout:
        raise UsageError(
            f"{_NEEDED}, and {_describe(command)} gives no version "
            f"(exit code {answer.returncode}){_INSTEAD}"
        )
    return command, answer.stdout


def build_library(command: list[str], version: str) -> Path:
    """Return the library's file, made where it is missing.

    Its name is of all that it depends on. It comes into its place whole, whoever else makes it at
    the same time.
    """
    here = Path(__file__).parent
    folder = _cache_folder() / "niidpart" / "native"
    file = folder / f"step-{_digest_inputs(here, command, version)[:32]}.so"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_own(folder)
        if not file.exists():
            with temporary_folder(file, 0o700) as scratch:
                made = scratch / file.name
                _compile(command, here / _SOURCES[0], made)
                made.chmod(0o700)  # whatever the umask: `_require_own` wants it so
                os.replace(made, file)
        _require_own(file)
    except OSError as error:
        raise UsageError(
            f"engine native keeps what it compiles in {folder}, which fails: {error}; "
            "set XDG_CACHE_HOME to another folder"
        ) from error
    return file


def _digest_inputs(here: Path, command: list[str], version: str) -> str:
    """Return a digest of the sources, the compiler and the processor."""
    parts = [(here / name).read_bytes() for name in _SOURCES]
    parts += [repr((command, _FLAGS)).encode(), version.encode(), _describe_processor().encode()]
    digests = [hashlib.sha256(part).digest() for part in parts]
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _cache_folder() -> Path:
    """Return the user's folder for what can be made again.

    A relative $XDG_CACHE_HOME counts as none, as the XDG specification says.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"


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


def _compile(command: list[str], source: Path, to: Path) -> None:
    """Run the compiler; UsageError with its first error where it fails."""
    done = subprocess.run(
        [*command, *_FLAGS, str(source), "-o", str(to)], capture_output=True, text=True, check=False
    )
    if done.returncode == 0 and to.exists():
        return
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    first = errors[0] if errors else done.stderr.strip()[:200]
    raise UsageError(
        f"engine native could not be compiled with {_describe(command)} "
        f"(exit code {done.returncode}): {first}{_INSTEAD}"
    )


def _describe(command: list[str]) -> str:
    """Return the compiler's command, and where it was named."""
    return f"{shlex.join(command)} ($CXX)" if os.environ.get("CXX") else shlex.join(command)


@functools.cache
def _describe_processor() -> str:
    """Return what the processor can do, as far as the system says so.

    A home folder may be shared by machines that differ.
    """
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    flags = [line for line in lines if line.startswith(("flags", "Features"))]
    known = flags[0] if flags else platform.processor()
    return f"{platform.system()} {platform.machine()} {known}"
