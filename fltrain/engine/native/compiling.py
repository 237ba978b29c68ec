"""Compiling of the C++: a library for each instruction set that a processor may have.

Needs the standard library alone: hatch_build.py runs this before anything is installed.
"""

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
# Libraries that a wheel brings lie here, one for each instruction set.
SHIPPED = HERE / "libraries"

_FLAGS = (
    "-std=c++17",
    "-O3",
    # no flag that lets the compiler reorder sums: errno and traps alone are given up
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
    "-shared",
    "-fPIC",
)
# Named one by one, and never -march=native: that is another code on each machine. They are what
# torch asks a processor for before it says AVX2 or AVX512 of it.
_AVX2 = ("-mavx2", "-mfma")
_AVX512 = (*_AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl")
BASELINE = "baseline"
_X86 = {BASELINE: (), "avx2": _AVX2, "avx512": _AVX512}
_COMPILERS = ("c++", "g++", "clang++")
# N of glibc 2.N of the oldest systems that torch's own wheels are for; and of versions of the C++
# library the last that those systems have (manylinux_2_28).
_OLDEST_GLIBC = 28
_ITS_CPP = {"GLIBCXX_3.4": 24, "CXXABI_1.3": 11}


class CompilerFault(Exception):
    """There is no compiler that works, or it refuses the code. The text is a clause for others."""


def list_instruction_sets() -> dict[str, tuple[str, ...]]:
    """Return the compiler's flags for each instruction set that this kind of processor may have.

    Where it is none of x86-64, what all processors of its kind have is the only one.
    """
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return _X86 if is_x86 else {BASELINE: ()}


def find_compiler() -> tuple[list[str], str]:
    """Return the compiler's command and its version; CompilerFault where none works.

    $CXX where that is set, else the first of c++, g++ and clang++ that there is.
    """
    command = shlex.split(os.environ.get("CXX", ""))
    if not command:
        found = [path for path in map(shutil.which, _COMPILERS) if path]
        if not found:
            raise CompilerFault("there is neither $CXX nor c++, g++ or clang++")
        command = found[:1]
    try:
        answer = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise CompilerFault(f"{_describe(command)} cannot be run ({error.strerror})") from error
    if answer.returncode or not answer.stdout:
        raise CompilerFault(
            f"{_describe(command)} gives no version (exit code {answer.returncode})"
        )
    return command, answer.stdout


def name_library(instructions: str, *, made_by: str = "") -> str:
    """Return the file name of a library, which is of all that it depends on.

    made_by: the compiler and the machine, where the name has to tell those too. Libraries that a
    wheel brings stand beside their sources, and cannot have been made by two compilers.
    """
    sources = [file.read_bytes() for file in _list_sources()]
    flags = repr((_FLAGS, list_instruction_sets()[instructions]))
    parts = [*sources, flags.encode(), made_by.encode()]
    digests = [hashlib.sha256(part).digest() for part in parts]
    digest = hashlib.sha256(b"".join(digests)).hexdigest()
    return f"step-{instructions}-{digest[:32]}.so"


def compile_library(
    command: list[str], instructions: str, to: Path, source: Path | None = None
) -> None:
    """Run the compiler; CompilerFault with its first error where it fails.

    source: other C++ than that which trains, for benchmarks that look into it.
    """
    flags = (*_FLAGS, *list_instruction_sets()[instructions])
    call = [*command, *flags, str(source or HERE / "step.cpp"), "-o", str(to)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode == 0 and to.exists():
        return
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    first = errors[0] if errors else done.stderr.strip()[:200]
    raise CompilerFault(f"{_describe(command)} (exit code {done.returncode}): {first}")


def find_oldest_glibc(libraries: list[Path]) -> int | None:
    """Return N of the oldest glibc 2.N whose systems have what the libraries ask for.

    None where they ask for a C++ library that the oldest systems do not have: from which on one
    has it, the libraries do not say.
    """
    asked = b"".join(file.read_bytes() for file in libraries)
    for name, last in _ITS_CPP.items():
        if any(version > last for version in _list_versions(asked, name)):
            return None
    return max([_OLDEST_GLIBC, *_list_versions(asked, "GLIBC_2")])


def _list_versions(asked: bytes, name: str) -> list[int]:
    """Return N of each `name`.N among the versions that a library asks for."""
    pattern = re.escape(name).encode() + rb"\.(\d+)"
    return [int(version) for version in re.findall(pattern, asked)]


def _list_sources() -> list[Path]:
    """Return the files of the C++, in one order everywhere."""
    return sorted([*HERE.glob("*.cpp"), *HERE.glob("*.h")])


def _describe(command: list[str]) -> str:
    """Return the compiler's command, and where it was named."""
    return f"{shlex.join(command)} ($CXX)" if os.environ.get("CXX") else shlex.join(command)
