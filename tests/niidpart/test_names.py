"""What is there after `import niidpart`, in a process of its own: other tests import rooms."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import niidpart

DOCS = Path(__file__).parents[2] / "docs"
ROOMS = [
    "checking",
    "features",
    "formats",
    "hub",
    "interop",
    "making",
    "plot",
    "recipes",
    "registry",
    "splits",
    "strategies",
    "temporaries",
    "transforms",
]


def run_fresh(code):
    """Run code in a new process, which has to end well; return what it prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def find_documented_names():
    """Return each dotted name below `niidpart` that the documents name in code."""
    found = set()
    for page in DOCS.glob("*.md"):
        found |= set(re.findall(r"`(niidpart(?:\.[a-z]\w*)+)\b(?!/)", page.read_text()))
    return sorted(name for name in found if name != "niidpart.json")


def test_each_name_of_the_documents_is_there_without_an_import_of_its_own():
    names = find_documented_names()
    assert {"niidpart.plot.draw", "niidpart.hub.fetch"} <= set(names)
    run_fresh("import niidpart\n" + "\n".join(names))


def test_each_room_is_there_without_an_import_of_its_own():
    names = [f"niidpart.{room}" for room in ROOMS]
    run_fresh("import niidpart\n" + "\n".join(names))


def test_dir_has_every_name_and_room():
    names = set(run_fresh("import niidpart; print(*dir(niidpart))").split())
    assert {"__version__", "__doc__", "__all__", *niidpart.__all__, *ROOMS} <= names


def test_a_name_that_was_used_is_kept():
    run_fresh("import niidpart\nniidpart.make\nassert 'make' in vars(niidpart)")


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'niidpart' has no attribute 'mkae'"):
        getattr(niidpart, "mkae")  # noqa: B009
    assert not hasattr(niidpart, "plot.draw")


def test_a_room_that_cannot_be_imported_says_why():
    code = (
        "import sys, niidpart\n"
        "sys.modules['numpy'] = None\n"
        "try:\n    niidpart.plot\n"
        "except ImportError as error:\n    print(error.name)"
    )
    assert run_fresh(code).strip() == "numpy"
