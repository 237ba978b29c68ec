"""What is exported says what it is, and its functions what they take."""

import inspect

import pytest

import fltrain
import niidpart

EXPORTED = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in (niidpart, fltrain)
    for name in package.__all__
}
FUNCTIONS = [name for name, value in EXPORTED.items() if inspect.isfunction(value)]
CLASSES = [name for name, value in EXPORTED.items() if inspect.isclass(value)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_does_and_takes(name):
    text = inspect.getdoc(EXPORTED[name])
    assert text
    if len(inspect.signature(EXPORTED[name]).parameters) > 1:
        assert "Parameters\n----------\n" in text


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_and_its_public_members_say_what_they_are(name):
    assert inspect.getdoc(EXPORTED[name])
    for member, value in vars(EXPORTED[name]).items():
        function = value.fget if isinstance(value, property) else getattr(value, "func", value)
        function = getattr(function, "__func__", function)
        if not member.startswith("_") and inspect.isfunction(function):
            assert function.__doc__, member
