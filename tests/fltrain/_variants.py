"""What the shared tests try of an algorithm: its options away from their defaults, read off its declaration.

Its own test file, `test_NAME.py`, can add what no declaration says:

VARIANTS    options to try together, a list of dicts
FEW_ROUNDS  options with which a run of three rounds shows all that the algorithm does
EXACT       options without which a party's numbers are rounded at random
NETWORK     the network of test_conformance.py that it is trained on, where that is not one with batch norm
"""

import importlib
import importlib.util
import typing

from fltrain.algorithms import ALGORITHMS, build
from fltrain.interface import UsageError

from ..niidpart.option_values import bounds_of, is_tuple, kind_of


def find_declared(name, what, default):
    """What an algorithm's own test file says, else the default; a user's own algorithm has none."""
    if name not in ALGORITHMS.names():
        return default
    module = f"{__package__}.test_{name.replace('-', '_')}"
    if importlib.util.find_spec(module) is None:
        return default
    return getattr(importlib.import_module(module), what, default)


def takes_batch_norm(name):
    """Whether it trains a model whose batch norm keeps statistics."""
    return find_declared(name, "NETWORK", "normed") == "normed"


def list_own_variants(name):
    """The defaults, and what the algorithm's own test file adds."""
    return [{}, *find_declared(name, "VARIANTS", [])]


def list_variants(name):
    """The defaults, each option by itself away from its default, and what the own test file adds."""
    options = ALGORITHMS.options(ALGORITHMS.find(name)).values()
    away = [{option.name: value} for option in options for value in leave_default(name, option)]
    return [*list_own_variants(name), *away]


def leave_default(name, option):
    """Values of an option: each other word; of a number one well below its default, or one above it where that is refused."""
    kind = kind_of(option)
    if typing.get_origin(kind) is typing.Literal:
        return [word for word in typing.get_args(kind) if word != option.default]
    if kind is bool:
        return [not option.default]
    if kind not in (int, float) or is_tuple(option):
        return []
    least, most = bounds_of(option)
    default = option.default or 0
    below = default // 2 if kind is int else default / 10
    tried = [below, 2 * default, 1, 0.5] if default else [1, 0.5]
    for value in tried:
        inside = kind(min(max(value, least), most))
        if inside != option.default and is_taken(name, {option.name: inside}):
            return [inside]
    return []


def is_taken(name, options):
    try:
        build(name, **options)
    except UsageError:
        return False
    return True
