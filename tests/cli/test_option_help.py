"""An option's help stands in its annotation, and `--help` shows it."""

import re
from typing import Annotated, Literal

import click
import pytest

from fltrain.algorithms import ALGORITHMS
from niidpart.data import SOURCES
from niidpart.formats import FORMATS
from niidpart.interop.importing import IMPORTERS
from niidpart.registry import Registry
from niidpart.strategies import STRATEGIES
from niidpart.transforms import TRANSFORMS
from niidpart_cli.options import declare_options, to_click_type
from niidpart_cli.split.make import HEADINGS as MAKE
from niidpart_cli.train.options import HEADINGS as RUN


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


FOLDER = Registry("niidpart.strategies", "strategy")


def helps(function):
    return {
        option.name: option.help for option in declare_options(FOLDER.options(function).values())
    }


@pytest.mark.parametrize(
    "registry",
    [STRATEGIES, TRANSFORMS, SOURCES, FORMATS, IMPORTERS, ALGORITHMS],
    ids=lambda r: type(r).__name__ + r.package,
)
def test_every_option_says_in_a_sentence_what_it_means(registry):
    options = list(registry.all_options())
    assert options
    for entry, option in options:
        assert option.about[:-1].strip(), (registry.package, entry, option.name)
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
    assert to_click_type(options["way"].annotation).choices == ("a", "b")


def test_help_says_what_an_option_means_and_its_default():
    assert helps(near)["mu"] == "Weight of the pull.  [default: 0.01]"
    assert helps(near)["k"] == "[required]"
    assert helps(near)["rounds"] == "When."
    assert helps(far)["sizes"] == "[default: x]"


def test_an_option_of_several_entries_is_declared_once():
    declared = [*FOLDER.options(near).values(), *FOLDER.options(far).values()]
    names = [option.name for option in declare_options(declared)]
    assert names == ["mu", "rounds", "k", "way", "sizes"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            "make --strategy dir --help",
            ["Options of the strategy dir:", "--beta FLOAT", "--min-size INTEGER"],
        ),
        ("make --strategy=noise-space --help", ["Options of the strategy noise-space:", "--sigma"]),
        ("make --dataset csv --help", ["Options of the data set csv:", "Column of the classes."]),
        ("run --algorithm fedprox --help", ["Options of the algorithm fedprox:", "0 is FedAvg"]),
        ("run -h --algorithm=fedcd", ["Options of the algorithm fedcd:", "--milestones ROUNDS"]),
        ("plot --kind bars --help", ["Options of the kind bars:", "--share / --no-share"]),
        ("export --to hf --help", ["Options of the format hf:", "--include-data"]),
        ("import --from csv --dataset csv -h", ["Options of the data set csv:", "--label TEXT"]),
    ],
)
def test_the_options_of_the_named_entry_come_first(args, said, tmp_path, niidpart, fltrain):
    shown = (fltrain if args.startswith("run") else niidpart)(*args.split(), cwd=tmp_path).stdout
    for text in said:
        assert text in " ".join(shown.split())
    own, headings = shown.index("Options of the"), [f"{h.title}:" for h in (*RUN, *MAKE)]
    assert all(own < shown.index(f"\n{title}\n") for title in headings if title in shown)
    assert len(shown.splitlines()) < 300


@pytest.mark.parametrize(
    ("command", "headings", "line"),
    [
        ("make", MAKE, "--strategy NAME --help shows those of a strategy."),
        ("run", RUN, "--algorithm NAME --help shows those of an algorithm."),
    ],
)
def test_help_without_a_name_is_grouped_and_says_how_to_see_more(
    command, headings, line, tmp_path, niidpart, fltrain
):
    program = fltrain if command == "run" else niidpart
    shown = program(command, "--help", cwd=tmp_path).stdout
    places = [shown.index(f"\n{heading.title}:\n") for heading in headings]
    assert places == sorted(places)
    assert line in shown
    assert not re.search(r"^  --(mu|beta) ", shown, re.MULTILINE)


def test_every_option_stands_under_a_heading():
    from niidpart_cli.split.make import make_command
    from niidpart_cli.train.run import run_command

    for command in (make_command(), run_command()):
        named = [name for heading in command.headings for name in heading.names]
        assert len(named) == len(set(named))
        assert set(named) == {p.name for p in command.fixed if isinstance(p, click.Option)}


def test_options_of_a_users_own_file_are_taught_too(tmp_path, niidpart):
    (tmp_path / "mine.py").write_text(
        "from typing import Annotated\nfrom niidpart.strategies import Owners\n"
        "def all_to(labels, n_parties, rng, *, party: Annotated[int, 'Who gets everything.'] = 0):\n"
        "    'Everything to one party.'\n"
        "    return Owners(labels * 0 + party, {})\n"
    )
    shown = niidpart("make", "--strategy", "mine.py:all_to", "--help", cwd=tmp_path).stdout
    assert "Who gets everything. [default: 0]" in " ".join(shown.split())
    assert "Everything to one party." in shown


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("niidpart make --strategy homo --clients 10", "--parties"),
        ("niidpart make --strategy dir --alpha 0.5", "--beta"),
        ("niidpart make --strategy dir --num-clients 10", "--parties"),
        ("niidpart make --strategy iid", "did you mean 'homo'?"),
        ("niidpart make --strategy pathological", "did you mean 'labels' or 'shards'?"),
        ("niidpart make --strategy dirichlet", "did you mean 'dir'?"),
        ("fltrain run split.h5 --epochs 5", "--local-epochs"),
        ("fltrain run split.h5 --learning-rate 0.1", "--lr"),
        ("fltrain run split.h5 --num-rounds 5", "--rounds"),
        ("fltrain run split.h5 --ronds 4", "--rounds"),
    ],
)
def test_the_fields_words_lead_to_ours(command, said, tmp_path, niidpart, fltrain):
    program, *args = command.split()
    done = (fltrain if program == "fltrain" else niidpart)(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]


def test_an_option_of_two_types_is_refused():
    near_options = [*FOLDER.options(near).values()]
    wide = [option._replace(annotation=float) for option in near_options if option.name == "k"]
    assert wide
    with pytest.raises(TypeError, match=r"option k is .*one name has one type"):
        declare_options([*near_options, *wide])
