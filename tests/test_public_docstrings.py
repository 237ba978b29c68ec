"""What is exported says what it is, and its functions what they take and what they return."""

import importlib
import inspect

import pytest

import fltrain
import niidpart

# The modules whose names users read: each function of their `__all__`, and each public method of
# their classes, has whole sections. `niidpart` is held to less below.
DOCUMENTED_MODULES = [
    "fltrain",
    "fltrain.directions.affine",
    "fltrain.algorithms",
    "fltrain.directions.ascent",
    "fltrain.directions.class_logits",
    "fltrain.draws",
    "fltrain.directions.envelope",
    "fltrain.evidence.power",
    "fltrain.evidence.sign_flip",
    "fltrain.interface",
    "fltrain.directions.local_rule",
    "fltrain.directions.loss_terms",
    "fltrain.models",
    "fltrain.named_layers",
    "fltrain.presets",
    "fltrain.tree",
    "niidpart.arithmetic.deal",
    "niidpart.arithmetic.exact",
    "niidpart.arithmetic.rng",
    "niidpart.data",
    "niidpart.formats",
    "niidpart.formats.fedlab",
    "niidpart.formats.flower",
    "niidpart.heterogeneity",
    "niidpart.heterogeneity.measures",
    "niidpart.plot",
    "niidpart.recipes",
    "niidpart.registry",
    "niidpart.strategies",
    "niidpart.transforms",
]

EXPORTED = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in (niidpart, fltrain)
    for name in package.__all__
}
FUNCTIONS = [name for name, value in EXPORTED.items() if inspect.isfunction(value)]
CLASSES = [name for name, value in EXPORTED.items() if inspect.isclass(value)]


def find_callables(module):
    """{name: function or class} of a module's `__all__`, with the public methods of its classes."""
    found = {}
    for name in importlib.import_module(module).__all__:
        value = getattr(importlib.import_module(module), name)
        if inspect.isfunction(value):
            found[f"{module}.{name}"] = value
        elif inspect.isclass(value):
            found[f"{module}.{name}"] = value
            for member, inner in vars(value).items():
                method = getattr(inner, "__func__", inner)  # of a class method
                if inspect.isfunction(method) and not member.startswith("_"):
                    found[f"{module}.{name}.{member}"] = method
    return found


DOCUMENTED = {
    name: value for module in DOCUMENTED_MODULES for name, value in find_callables(module).items()
}


def has_section(text, *titles):
    return any(f"{title}\n{'-' * len(title)}\n" in text for title in titles)


def takes_something(function):
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # an error, which python's own class takes
        return False
    return bool([name for name in parameters if name not in ("self", "cls", "args", "kwargs")])


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_documented_name_says_what_it_takes_and_returns(name):
    value, text = DOCUMENTED[name], inspect.getdoc(DOCUMENTED[name])
    assert text
    if inspect.isclass(value):
        assert has_section(text, "Parameters", "Attributes") or not takes_something(value)
        return
    assert has_section(text, "Parameters") or not takes_something(value)
    returned = inspect.signature(value).return_annotation
    if returned not in (None, inspect.Signature.empty):
        assert has_section(text, "Returns", "Yields")


# methods are shown by the example of their class
EXPLAINED = [name for name in DOCUMENTED if name.rpartition(".")[0] in DOCUMENTED_MODULES]


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_documented_name_has_an_example(name):
    assert has_section(inspect.getdoc(DOCUMENTED[name]), "Examples")


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
