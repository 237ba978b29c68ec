"""An environment for each rival, with the build of torch that pip finds for its Python."""

import shutil
import subprocess
from pathlib import Path

from . import Case

__all__ = ["NotInstalled", "make_environment", "name_versions"]

TORCH = "torch==2.13.0"
VERSIONS = """
import sys
from importlib.metadata import version
names = sys.argv[1:]
print("Python " + sys.version.split()[0], *(f"{name} {version(name)}" for name in names), sep=", ")
"""


class NotInstalled(Exception):
    """What a rival needs and is not here."""


def make_environment(case: Case, folder: Path) -> Path:
    """Return the python of a case's environment, which is made if it is not there."""
    home = folder / case.name
    done, wanted = home / "installed", "\n".join((case.python, TORCH, *case.packages))
    if done.exists() and done.read_text() == wanted:
        return home / "bin" / "python"
    if shutil.which(case.python) is None:
        raise NotInstalled(f"there is no {case.python}")
    commands = [
        (case.python, "-m", "venv", "--clear", home),
        # torch first: a rival's own wish for one must find it there
        (home / "bin/pip", "install", "--quiet", TORCH),
        (home / "bin/pip", "install", "--quiet", TORCH, *case.packages),
    ]
    for command in commands:
        ended = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if ended.returncode:
            said = ended.stderr.strip().splitlines() or ["no reason given"]
            raise NotInstalled(f"it could not be installed: {said[-1]}")
    done.write_text(wanted)
    return home / "bin" / "python"


def name_versions(python: Path, case: Case) -> str:
    """Return what the table says of the environment and of the checkout."""
    names = ["torch", *(package.split("[")[0].split("==")[0] for package in case.packages)]
    asked = subprocess.run(
        [str(python), "-c", VERSIONS, *names],
        capture_output=True,
        text=True,
        check=True,
    )
    return f"{asked.stdout.strip()}, {case.repository} at {case.commit}"
