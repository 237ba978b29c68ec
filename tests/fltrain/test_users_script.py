"""What a type checker knows of fltrain and niidpart when it reads a user's script."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "users_script.py"


@pytest.fixture(scope="module")
def check(project, tmp_path_factory):
    """check(path): what `mypy --strict` says of a script."""
    pytest.importorskip("mypy")
    cache = tmp_path_factory.mktemp("mypy")

    def run(path):
        command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={cache}", str(path)]
        return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)

    return run


def test_a_users_script_is_checked_strictly_and_runs(check, tmp_path):
    checked = check(SCRIPT)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    command = [sys.executable, str(SCRIPT), str(tmp_path / "split.h5")]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.stdout.splitlines()[0] == "5 fedavg scaffold", ran.stderr


def test_what_a_constructor_returns_is_known(check, tmp_path):
    """Not Any, which would let everything through."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import fltrain\n\nnumber: int = fltrain.algorithms.fedavg()\n")
    checked = check(wrong)
    assert checked.returncode == 1
    assert 'has type "Algorithm"' in checked.stdout


def test_a_constructor_is_found_in_its_file_too(check, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from fltrain.algorithms.fedavg import fedavg\n\nprint(fedavg(0.5).name)\n")
    assert check(script).returncode == 0
