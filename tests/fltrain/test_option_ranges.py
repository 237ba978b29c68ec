"""What algorithms and settings declare holds: values within their range are taken, others refused by name."""

import pytest

import fltrain
from fltrain import Settings
from fltrain.algorithms import ALGORITHMS, build
from fltrain.settings import SETTINGS

from ..niidpart.option_values import edges, outsiders


def of_algorithms(values):
    """(algorithm, option, value) of all options of all algorithms that have a range."""
    return [
        pytest.param(name, option.name, value, id=f"{name}-{option.name}-{value}")
        for name, option in ALGORITHMS.all_options()
        if option.ranges
        for value in values(option)
    ]


def of_settings(values):
    """(setting, value) of all settings that have a range."""
    return [
        pytest.param(name, value, id=f"{name}-{value}")
        for name, option in SETTINGS.items()
        if option.ranges
        for value in values(option)
    ]


@pytest.mark.parametrize(("name", "option", "value"), of_algorithms(edges))
def test_an_option_within_its_range_is_taken_or_does_not_suit_the_others(name, option, value):
    refusal = None
    try:
        built = build(name, **{option: value})
    except fltrain.UsageError as error:
        refusal = str(error)
    if refusal is None:
        assert built.options[option] == value
    else:
        assert "; it must be" not in refusal  # not the range: what other options are


@pytest.mark.parametrize(("name", "option", "value"), of_algorithms(outsiders))
def test_an_option_outside_its_range_is_refused_by_name(name, option, value):
    with pytest.raises(fltrain.UsageError, match=rf"{option} is .*; it must be"):
        build(name, **{option: value})


@pytest.mark.parametrize(("name", "value"), of_settings(edges))
def test_a_setting_within_its_range_is_taken(name, value):
    assert getattr(Settings(**{name: value}), name) == value


@pytest.mark.parametrize(("name", "value"), of_settings(outsiders))
def test_a_setting_outside_its_range_is_refused_by_name(name, value):
    with pytest.raises(fltrain.UsageError, match=rf"{name.replace('_', '-')} is .*; it must be"):
        Settings(**{name: value})


def test_the_cases_are_those_of_every_bound():
    options = [option for _, option in ALGORITHMS.all_options()]
    for cases, declared in (
        (of_algorithms(outsiders), options),
        (of_settings(outsiders), SETTINGS.values()),
    ):
        assert len(cases) == sum(len(option.ranges) for option in declared) > 20
