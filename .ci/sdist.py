"""Fails if a source distribution lacks a file, or has one that belongs to the repository alone.

python .ci/sdist.py SDIST
"""

import subprocess
import sys
import tarfile

ROOMS = ("niidpart", "fltrain", "cli", "docs")
BESIDE = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "constraints.txt",
    "constraints-oldest.txt",
    "hatch_build.py",
)
ADDED = {"PKG-INFO", ".gitignore"}  # by hatchling

with tarfile.open(sys.argv[1]) as held:
    in_sdist = {entry.name.partition("/")[2] for entry in held.getmembers() if entry.isfile()}
tracked = subprocess.run(
    ["git", "ls-files", *ROOMS, *BESIDE], check=True, capture_output=True, text=True
).stdout.split()
missing = sorted(set(tracked) - in_sdist)
stray = sorted(in_sdist - set(tracked) - ADDED)
if missing or stray:
    sys.exit(
        f"the source distribution lacks {missing} and has {stray}; see tool.hatch in pyproject.toml"
    )
print(f"the source distribution has all {len(tracked)} files, and no other")
