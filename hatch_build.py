"""Compiles engine native into a wheel: a library for each instruction set.

Without a compiler the wheel is one of Python alone, and the code is compiled at its first use.
"""

import importlib.util
import platform
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

NATIVE = Path("fltrain", "engine", "native")


class NativeBuildHook(BuildHookInterface):
    """Adds the libraries to a wheel, and says in its name which systems they run on."""

    folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile. An editable install has none: there, sources change under their libraries."""
        if version == "editable" or platform.system() != "Linux":
            return
        compiling = _load_compiling(Path(self.root))
        self.folder = tempfile.TemporaryDirectory()
        try:
            files = _compile_all(compiling, Path(self.folder.name))
        except compiling.CompilerFault as fault:
            self.app.display_warning(f"engine native is not compiled into this wheel: {fault}")
            return
        within = NATIVE / compiling.SHIPPED.name
        for file in files:
            build_data["force_include"][str(file)] = str(within / file.name)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_name_platform(compiling, files)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled, once it lies in the wheel."""
        if self.folder is not None:
            self.folder.cleanup()


def _load_compiling(root: Path) -> ModuleType:
    """Return fltrain/engine/native/compiling.py without its package, which needs torch."""
    spec = importlib.util.spec_from_file_location("compiling", root / NATIVE / "compiling.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no {NATIVE}/compiling.py in {root}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile_all(compiling: ModuleType, folder: Path) -> list[Path]:
    """Return the libraries, one for each instruction set, compiled side by side."""
    command, _ = compiling.find_compiler()
    files = {
        name: folder / compiling.name_library(name) for name in compiling.list_instruction_sets()
    }
    with ThreadPoolExecutor() as pool:
        done = [pool.submit(compiling.compile_library, command, *each) for each in files.items()]
    for one in done:
        one.result()
    return list(files.values())


def _name_platform(compiling: ModuleType, files: list[Path]) -> str:
    """Return the wheel's platform: on glibc the oldest system that has what the libraries ask for.

    Systems like this one where that is not known, or the C library is another one.
    """
    tags = list(platform_tags())
    is_glibc = any(tag.startswith("manylinux_") for tag in tags)
    oldest = compiling.find_oldest_glibc(files)
    if not is_glibc or oldest is None:
        return tags[0]
    return f"manylinux_2_{oldest}_{platform.machine()}"
