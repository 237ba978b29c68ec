"""The plan of the rows for data with parties of its own: its cells, and the settings of each."""

import pytest

from fltrain.studies.plans.expansion import expand_plan
from fltrain.studies.plans.plan import read_plan
from fltrain.studies.plans.plan_text import read_plan_text


@pytest.fixture
def plan_text(project):
    return read_plan_text(project / "examples" / "natural" / "plan.toml")


def test_each_data_set_has_three_rows_of_three_seeds(plan_text):
    cells = expand_plan(read_plan(plan_text))
    datasets = {split["dataset"] for split in plan_text.values["splits"]}
    assert len(cells) == 9 * len(datasets)
    assert all(split["strategy"] == "group" for split in plan_text.values["splits"])


def test_each_condition_is_of_a_data_set_that_is_there(plan_text):
    datasets = {split["dataset"] for split in plan_text.values["splits"]}
    for condition in plan_text.values["when"]:
        named = condition["match"]["dataset"]
        assert {named} <= datasets if isinstance(named, str) else set(named) <= datasets
