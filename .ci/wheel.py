"""Fails if a wheel lacks a file of the packages, or compiled code: python .ci/wheel.py WHEEL."""

import runpy
import subprocess
import sys
import zipfile

COMPILING = runpy.run_path("fltrain/engine/native/compiling.py")

in_wheel = set(zipfile.ZipFile(sys.argv[1]).namelist())
tracked = subprocess.run(
    ["git", "ls-files", "niidpart", "fltrain", "cli"], check=True, capture_output=True, text=True
).stdout.split()
missing = [f for f in tracked if f.removeprefix("cli/") not in in_wheel]
libraries = [COMPILING["name_library"](one) for one in COMPILING["list_instruction_sets"]()]
missing += [f for f in libraries if f"fltrain/engine/native/libraries/{f}" not in in_wheel]
if missing:
    sys.exit(f"the wheel lacks {', '.join(missing)}; see tool.hatch in pyproject.toml")
print(f"the wheel has all {len(tracked)} files, and compiled code for {len(libraries)} processors")
