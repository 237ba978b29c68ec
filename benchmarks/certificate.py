"""Print the tables of docs/certificate.md: which test shows which property, and how far others' code is.

    python benchmarks/certificate.py [--algorithms fedper,afl] [--measure] [--into docs/certificate.md]

Properties are the tests themselves, read off their files. `--measure` adds the differences to a second
writing, by running the tests that note one (the fixture `certify`), some minutes for all. What released
code gave, which is no part of this project, stands in certificate.toml, with repository and commit.
`--into` puts the tables into the page in place of those there.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fltrain.algorithms import ALGORITHMS
from fltrain.compressors import COMPRESSORS

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "fltrain"
SUITE = "test_conformance.py"
RECORDS = tomllib.loads((ROOT / "benchmarks" / "certificate.toml").read_text())
NOTES = "certify"  # the fixture by which a test notes a difference
Table = list[list[str]]


class Check(NamedTuple):
    """A test: its file, its name, and the names and strings that it uses."""

    file: str
    name: str
    uses: frozenset[str]

    @property
    def id(self) -> str:
        return f"{self.file}::{self.name}"

    @property
    def words(self) -> str:
        return self.name.removeprefix("test_").replace("_", " ")


def list_subjects() -> list[str]:
    """Return all that has to have a certificate: algorithms, and compressors."""
    return [*ALGORITHMS.names(), *COMPRESSORS.names()]


def read_checks(file: str) -> list[Check]:
    """Return the tests of a file, each with what it uses, constants of the file looked into."""
    body = ast.parse((TESTS / file).read_text()).body
    constants = {
        target.id: _list_words(node.value)
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = []
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            words = _list_words(node)
            words.update(*(constants[word] for word in words & constants.keys()))
            found.append(Check(file, node.name, frozenset(words)))
    return found


def _list_words(node: ast.AST) -> set[str]:
    """Return names, and strings up to their first space."""
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            found.add(one.id)
        elif isinstance(one, ast.arg):
            found.add(one.arg)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            found.add(one.value.partition(" ")[0])
    return found


def find_checks(subject: str) -> list[Check]:
    """Return the tests of an algorithm's own. SystemExit for one that is named and is not there."""
    own_file = f"test_{subject.replace('-', '_')}.py"
    found = []
    for place in RECORDS["tests"].get(subject, [own_file]):
        file, _, name = place.partition("::")
        checks = {check.name: check for check in read_checks(file)}
        if name and name not in checks:
            raise SystemExit(f"there is no test {place}; benchmarks/certificate.toml names it")
        if name:
            found.append(checks[name])
        elif file == own_file:
            found += checks.values()
        else:
            found += [check for check in checks.values() if _is_about(check, subject)]
    return found


def _is_about(check: Check, subject: str) -> bool:
    """Return whether a test of a file of several is about one of them: it names it, or none."""
    together = [name for name, places in RECORDS["tests"].items() if check.file in places]
    named = [name for name in together if name.replace("-", "_") in check.uses | _spell(check)]
    return subject in named or not named


def _spell(check: Check) -> set[str]:
    """Return the words that a test uses, with _ for a hyphen, and those of its name."""
    return {word.replace("-", "_") for word in check.uses} | set(check.name.split("_"))


def tabulate_suite() -> Table:
    """Return the table of the shared suite, to which all algorithms are held."""
    return [["all algorithms"], *([check.words] for check in read_checks(SUITE))]


def tabulate_properties(subjects: Sequence[str]) -> Table:
    rows = [["algorithm", "tests", "properties"]]
    for subject in subjects:
        by_file = defaultdict(list)
        for check in find_checks(subject):
            by_file[check.file].append(check.words)
        if not by_file:
            raise SystemExit(
                f"{subject} has no tests; name its file in benchmarks/certificate.toml"
            )
        for file, words in by_file.items():
            rows.append([_say(subject), f"`{file}`", "; ".join(words)])
    return rows


def _say_gap(gap: float) -> str:
    return f"{gap:.1e}" if gap else "0"


def _say(subject: str) -> str:
    return f"`{subject}`" if subject in ALGORITHMS.names() else f"`--compress {subject}`"


class Notes:
    """A plug-in of pytest that keeps what tests note: the largest by algorithm and test."""

    def __init__(self) -> None:
        self.largest: dict[tuple[str, str], float] = {}
        self.bounds: dict[tuple[str, str], float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        for subject, gap, bound in (noted for _, noted in report.user_properties):
            key = subject, report.nodeid.partition("[")[0].rpartition("::")[2]
            self.largest[key] = max(gap, self.largest.get(key, 0.0))
            self.bounds[key] = bound


def measure(subjects: Sequence[str]) -> Notes:
    """Run the tests that note a difference for one of these. SystemExit where one fails."""
    ids = sorted(
        {
            f"{TESTS}/{check.id}"
            for subject in subjects
            for check in find_checks(subject)
            if NOTES in check.uses
        }
    )
    notes = Notes()
    asked = ["-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *ids]
    with redirect_stdout(sys.stderr):
        code = pytest.main(asked, plugins=[notes])
    if code:
        raise SystemExit(f"pytest ended with {code}")
    return notes


def tabulate_differences(subjects: Sequence[str]) -> Table:
    """Return the table of what is written a second time in the tests, measured now."""
    notes = measure(subjects)
    rows = [["algorithm", "written a second time in", "largest difference", "bound"]]
    for subject in subjects:
        own = [key for key in notes.largest if key[0] == subject]
        for key in own:
            gap, bound = notes.largest[key], notes.bounds[key]
            rows.append([_say(subject), f"`{key[1]}`", _say_gap(gap), f"{bound:.0e}"])
        if not own:
            raise SystemExit(f"no test of {subject} notes a difference")
    return rows


def tabulate_released(subjects: Sequence[str]) -> Table:
    """Return the table of what released code gave, as it was noted."""
    head = ["algorithm", "released code, commit", "by", "what of it", "runs"]
    rows = [[*head, "largest difference", "with", "as it is"]]
    for subject in subjects:
        own = [one for one in RECORDS["released"] if one["algorithm"] == subject]
        rows += [_describe_run(one) for one in own]
        if not own:
            rows.append([_say(subject), RECORDS["not_run"][subject], *[""] * 6])
    return rows


def _describe_run(record: dict[str, Any]) -> list[str]:
    """Return the row of a run beside released code."""
    return [
        _say(record["algorithm"]),
        f"`{record['code']}` {record['commit']}",
        record["by"],
        record["part"],
        ", ".join(f"`{name}`" for name in record["setting"]),
        ", ".join(map(_say_gap, record["difference"])),
        record.get("with", ""),
        f"{record['as_it_is']:.1e}" if "as_it_is" in record else "",
    ]


def tabulate_settings() -> Table:
    head = ["runs", "from the same weights, on the same batches, in float64"]
    return [head, *([f"`{name}`", text] for name, text in RECORDS["settings"].items())]


def format_table(table: Table) -> str:
    head, *rows = table
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines
    )


def make_tables(subjects: Sequence[str], is_measured: bool) -> Iterator[str]:
    yield format_table(tabulate_suite())
    yield format_table(tabulate_properties(subjects))
    if is_measured:
        yield format_table(tabulate_differences(subjects))
    yield format_table(tabulate_released(subjects))
    yield format_table(tabulate_settings())


def put_into(page: str, table: str) -> str:
    """Return the page with a table in place of the one with the same head."""
    head = re.escape(table.partition("\n")[0])
    new, count = re.subn(rf"^{head}\n(\|.*\n)*", lambda _: table, page, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"the page has {count} tables with this head; it needs one:\n{head}")
    return new


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--algorithms", help="those alone; all if not given")
    parser.add_argument(
        "--measure", action="store_true", help="differences to a second writing too"
    )
    parser.add_argument("--into", type=Path, help="a page whose tables are replaced")
    asked = parser.parse_args()
    subjects = asked.algorithms.split(",") if asked.algorithms else list_subjects()
    tables = list(make_tables(subjects, asked.measure))
    if asked.into is None:
        print("\n".join(tables))
        return
    page = asked.into.read_text()
    for table in tables:
        page = put_into(page, table)
    asked.into.write_text(page)


if __name__ == "__main__":
    main()
