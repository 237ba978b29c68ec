"""How an algorithm was built: kept by `replace`, and no longer true of one that was changed."""

import json
from dataclasses import replace

import pytest

import fltrain
from fltrain.algorithms import build, fedavg, fedprox, scaffold
from fltrain.interface import Algorithm, Provenance

OPTIONS = {"mu": 0.3, "weights": "examples"}


def test_it_is_a_field_that_replace_keeps():
    built = fedprox(mu=0.3)
    assert isinstance(built.provenance, Provenance)
    assert (built.provenance.spec, built.provenance.options) == ("fedprox", OPTIONS)
    assert replace(built, name="mine").provenance is built.provenance
    assert (replace(built).spec, replace(built).options) == ("fedprox", OPTIONS)
    assert "Provenance(spec='fedprox', options={'mu': 0.3, 'weights': 'examples'})" in repr(built)


@pytest.mark.parametrize(
    "change",
    [
        {"direction": scaffold().direction},
        {"aggregate": scaffold().aggregate},
        {"hyper": {"mu": 5.0}},
        {"settings": {"momentum": 0.0}},
        {"name": "mine"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_changed_has_no_name(change):
    changed = replace(fedprox(mu=0.3), **change)
    assert (changed.spec, changed.options) == ("", {})


def test_an_algorithm_made_by_hand_has_none():
    made = fltrain.algorithms.ALGORITHMS.find("fedavg")()
    assert isinstance(made, Algorithm)
    assert (made.provenance, made.spec, made.options) == (None, "", {})


def test_a_constructor_of_ones_own_is_named_by_itself(tmp_path):
    """Not by the algorithm that it starts from, though that was built too."""
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import replace\nfrom fltrain.algorithms import fedprox\n\n"
        "def mine(mu: float = 0.1):\n    return replace(fedprox(mu=mu), name='mine')\n"
    )
    built = build(f"{file}:mine", mu=0.5)
    assert (built.spec, built.options) == (f"{file}:mine", {"mu": 0.5})


def test_a_changed_algorithm_is_not_taken_up_as_the_one_it_was(table, table_split, train, tmp_path):
    """Its folder says that it has no name; it goes on with the object alone, and no sweep builds it again."""
    mine = replace(fedavg(), direction=fedprox(mu=0.1).direction, hyper={"mu": 0.1})
    done = train(table_split, table, algorithm=mine, rounds=2, out=tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["algorithm"] == {"name": "fedavg", "spec": "", "options": {}}
    with pytest.raises(ValueError, match="an algorithm that has no name"):
        fltrain.resume(tmp_path / "run", table)
    again = fltrain.resume(tmp_path / "run", table, algorithm=mine)
    assert again.history == done.history
    with pytest.raises(ValueError, match="no name to build it by"):
        fltrain.sweep(table_split, table, algorithm=mine, grid={"server_lr": [0.5, 1.0]})


def test_a_run_gives_back_the_algorithm_that_its_folder_takes(table, table_split, train, tmp_path):
    """Also where the executor tells it the weight decay."""
    done = train(
        table_split, table, algorithm="fedmoc", weight_decay=1e-3, rounds=1, out=tmp_path / "run"
    )
    assert done.algorithm.spec == "fedmoc"
    assert fltrain.resume(tmp_path / "run", table, algorithm=done.algorithm).history == done.history


def test_a_misspelt_part_is_answered_with_the_nearest_one():
    with pytest.raises(fltrain.UsageError, match=r"no part 'directon'; did you mean 'direction'\?"):
        replace(fedavg(), directon=scaffold().direction)
