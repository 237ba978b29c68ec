"""The plans of the rows for data with parties of its own: their cells, and the settings of each."""

import pytest

from fltrain.studies.plans.expansion import expand_plan
from fltrain.studies.plans.plan import read_plan
from fltrain.studies.plans.plan_text import read_plan_text


@pytest.fixture
def plan_texts(project):
    plans = (project / "examples" / "natural").glob("*.toml")
    return {path.stem: read_plan_text(path) for path in plans}


def list_data(plan_text):
    return {split["dataset"] for split in plan_text.values["splits"]}


def test_each_data_set_has_three_rows_of_three_seeds(plan_texts):
    for text in plan_texts.values():
        cells = expand_plan(read_plan(text))
        assert len(cells) == 9 * len(list_data(text))
        assert all(split["strategy"] == "group" for split in text.values["splits"])


def test_each_condition_is_of_a_data_set_that_is_there(plan_texts):
    datasets = list_data(plan_texts["plan"])
    for condition in plan_texts["plan"].values["when"]:
        named = condition["match"]["dataset"]
        assert {named} <= datasets if isinstance(named, str) else set(named) <= datasets
