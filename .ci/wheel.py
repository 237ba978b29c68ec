"""Fails if a file of the packages is missing from the wheel: python .ci/wheel.py WHEEL."""

import subprocess
import sys
import zipfile

in_wheel = set(zipfile.ZipFile(sys.argv[1]).namelist())
tracked = subprocess.run(
    ["git", "ls-files", "niidpart", "fltrain", "cli"], check=True, capture_output=True, text=True
).stdout.split()
missing = [f for f in tracked if f.removeprefix("cli/") not in in_wheel]
if missing:
    sys.exit(f"the wheel lacks {', '.join(missing)}; see tool.hatch in pyproject.toml")
print(f"the wheel has all {len(tracked)} files")
