"""The script that sets our numbers beside the papers': it runs, it can be stopped, and its cells name what there is."""

import json
import re
import subprocess
import sys

import pytest

from fltrain.algorithms import ALGORITHMS
from fltrain.presets import names as presets
from niidpart import recipes


@pytest.fixture
def script(project):
    def run(*args):
        command = [sys.executable, project / "benchmarks" / "reproduction.py", *map(str, args)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=True
        ).stdout

    return run


@pytest.fixture
def groups(project, monkeypatch):
    monkeypatch.syspath_prepend(project / "benchmarks")
    import reproduction_cells

    return reproduction_cells.GROUPS


def test_all_cells_name_recipes_algorithms_and_options_that_there_are(groups):
    for group in groups.values():
        assert group.preset in presets()
        assert all(recipes.find_recipe(name) for name in group.recipes)
        for algorithm, grid in group.algorithms.items():
            for options in grid or ({},):
                assert ALGORITHMS.complete(algorithm, options).items() >= options.items()
        assert all(
            recipe in group.recipes and algorithm in group.algorithms
            for recipe, algorithm in group.cells
        )


def test_what_was_run_is_not_run_again_and_stands_in_the_table_beside_the_paper(script, tmp_path):
    out = tmp_path / "results.jsonl"
    arguments = (
        "run",
        "--data-root",
        tmp_path,
        "--out",
        out,
        "--groups",
        "fcube",
        "--trials",
        1,
        "--rounds",
        1,
    )
    assert script(*arguments).startswith("14 trials to run, 0 are there")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 14
    assert {line["rounds"] for line in lines} == {1}
    out.write_text("".join(json.dumps(line) + "\n" for line in lines[3:]))
    assert script(*arguments).startswith("3 trials to run, 11 are there")
    table = script("table", out)
    row = re.search(
        r"\| niid/fcube \| fedavg \| ([\d.]+) \| 1 \| 1 of 50 \| 99.8 ± 0.2 \| ([+-][\d.]+) \| - \|",
        table,
    )
    assert row, table
    assert float(row[1]) - 99.8 == pytest.approx(float(row[2]), abs=0.006)
    assert (
        table.count("| niid/fcube") == 16
    )  # 14 cells, and the best of FedProx's grid for each split
    assert table.count("best of the grid, on the test set: mu ") == 2
