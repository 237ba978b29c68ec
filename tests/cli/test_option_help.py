"""An option's help stands in its annotation, and `--help` shows it."""

from typing import Annotated, Literal

import pytest

from fltrain.algorithms import ALGORITHMS
from niidpart.data import SOURCES
from niidpart.formats import FORMATS
from niidpart.interop.importing import IMPORTERS
from niidpart.registry import Registry
from niidpart.strategies import STRATEGIES
from niidpart.transforms import TRANSFORMS
from niidpart_cli.program import click_type, union_options


def near(
    mu: Annotated[float, "Weight of the pull."] = 0.01,
    *,
    rounds: Annotated[tuple[int, ...], "When."] = (),
    k: int,
):
    """An entry of a user's own."""


def far(
    mu: Annotated[float, "Weight of the push."] = 2.0,
    way: Annotated[Literal["a", "b"] | None, "Which way."] = None,
    sizes: str = "x",
):
    """Another one."""


def again(mu: Annotated[float, "Weight of the pull."] = 0.5):
    """One that shares a text."""


FOLDER = Registry("niidpart.strategies", "strategy")


def helps(*functions):
    declared = [(f.__name__, option) for f in functions for option in FOLDER.options(f).values()]
    return {option.name: option.help for option in union_options(declared)}


@pytest.mark.parametrize(
    "registry",
    [STRATEGIES, TRANSFORMS, SOURCES, FORMATS, IMPORTERS, ALGORITHMS],
    ids=lambda r: type(r).__name__ + r.package,
)
def test_every_option_says_in_a_sentence_what_it_means(registry):
    options = list(registry.all_options())
    assert options
    for entry, option in options:
        assert option.help[:-1].strip(), (registry.package, entry, option.name)
        assert option.help.endswith("."), (registry.package, entry, option.name, option.help)


def test_the_type_of_an_option_is_bare():
    options = FOLDER.options(near) | FOLDER.options(far)
    assert {name: option.annotation for name, option in options.items()} == {
        "mu": float,
        "rounds": tuple[int, ...],
        "k": int,
        "way": Literal["a", "b"] | None,
        "sizes": str,
    }
    assert click_type(options["way"].annotation).choices == ("a", "b")


def test_help_gives_each_text_once_before_those_that_have_it():
    assert (
        helps(near, far, again)["mu"]
        == "Weight of the pull.  [near 0.01, again 0.5]  Weight of the push.  [far 2.0]"
    )
    assert helps(near)["k"] == "[near]"
    assert helps(far)["sizes"] == "[far x]"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "make",
            "Concentration of the Dirichlet draw, above 0: 0.1 is strong skew, 100 nearly none. [dir 0.5, dir-balanced 0.5, party-dir 0.5",
        ),
        ("make", "Standard deviation of the noise, 0 or more. [noise-space 0.1]"),
        ("make", "Column of the classes. [csv label, hf label, parquet label]"),
        (
            "run",
            "Weight of the pull back to the weights received, at least 0; 0 is FedAvg. [fedprox 0.01]",
        ),
    ],
)
def test_help_on_the_command_line_teaches(command, said, tmp_path, niidpart, fltrain):
    shown = (niidpart if command == "make" else fltrain)(command, "--help", cwd=tmp_path).stdout
    assert said in " ".join(shown.split())


def test_options_of_a_users_own_file_are_taught_too(tmp_path, niidpart):
    (tmp_path / "mine.py").write_text(
        "from typing import Annotated\nfrom niidpart.strategies import Owners\n"
        "def all_to(labels, n_parties, rng, *, party: Annotated[int, 'Who gets everything.'] = 0):\n"
        "    return Owners(labels * 0 + party, {})\n"
    )
    shown = niidpart("make", "--strategy", "mine.py:all_to", "--help", cwd=tmp_path).stdout
    assert "Who gets everything. [mine.py:all_to 0]" in " ".join(shown.split())
