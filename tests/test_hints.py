"""The field's words lead to ours: in errors, and in the glossary."""

import re
import tomllib
from inspect import signature

import numpy as np
import pytest

import fltrain
import niidpart
from fltrain.settings import SETTINGS
from niidpart.extras import advise_on_missing
from niidpart.registry import SYNONYMS, list_names
from niidpart.registry.hints import find_near
from niidpart.strategies import STRATEGIES
from niidpart.transforms import TRANSFORMS

LABELS = np.arange(100) % 5


@pytest.mark.parametrize(
    ("strategy", "options", "hint"),
    [
        ("iid", {}, "unknown strategy 'iid'; did you mean 'homo'?"),
        ("dirichlet", {}, "did you mean 'dir'?"),
        ("pathological", {}, "did you mean 'labels' or 'shards'?"),
        ("gaussian_noise", {}, "did you mean 'noise'?"),
        ("dir", {"alpha": 0.5}, "strategy 'dir' has no option 'alpha'; did you mean 'beta'?"),
        ("dir", {"num_clients": 10}, "did you mean 'n_parties'?"),
        ("dir", {"n_clients": 10}, "did you mean 'n_parties'?"),
        ("dir", {"clients": 10}, "did you mean 'n_parties'?"),
        ("dir", {"random_state": 1}, "did you mean 'seed'?"),
        ("labels", {"classes_per_client": 2}, "did you mean 'k'?"),
        ("labels", {"classes": 2}, "did you mean 'k'?"),
        ("labels", {"test_fraction": 0.2}, "did you mean 'test'?"),
    ],
)
def test_a_word_of_the_field_is_answered_with_ours(strategy, options, hint):
    with pytest.raises(niidpart.UsageError, match=re.escape(hint)):
        niidpart.make(LABELS, strategy, **options)


# A room, a name that was asked for there, and what it is answered with.
SLIPS = [
    ("fltrain.algorithms", "scafold", ["scaffold"]),
    ("fltrain.algorithms", "fedporx", ["fedprox"]),
    ("fltrain.algorithms", "fed-avg", ["fedavg"]),
    ("fltrain.algorithms", "FedProx", ["fedprox"]),
    ("fltrain.algorithms", "prox", ["fedprox"]),
    ("fltrain.algorithms", "adam", ["fedadam"]),
    ("fltrain.algorithms", "mooon", ["moon"]),
    ("fltrain.models", "mpl", ["mlp"]),
    ("fltrain.algorithms", "noon", ["moon"]),
    ("fltrain.models", "resnet-18", ["resnet18"]),
    ("fltrain.models", "vit", ["vit-tiny", "vit-fedtp"]),
    ("fltrain.models", "cnn-pf", ["cnn-pfl"]),
    ("fltrain.models", "simplecnn", []),
    ("fltrain.metrics", "f1", ["macro-f1"]),
    ("fltrain.metrics", "f1-macro", ["macro-f1"]),
    ("fltrain.metrics", "roc_auc", ["auc"]),
    ("niidpart.strategies", "dirichelt", ["dir"]),
    ("niidpart.strategies", "homogenous", ["homo"]),
    ("niidpart.sources", "minst", ["mnist"]),
    ("niidpart.sources", "CIFAR10", ["cifar10"]),
    ("niidpart.sources", "fashion-mnist", ["fmnist"]),
]
# Names of other things, which the nearest of ours would answer with a guess.
FAR = [
    ("fltrain.algorithms", ["krum", "fedgan", "xgboost", "splitnn"]),
    ("fltrain.models", ["rnn", "alexnet", "densenet", "efficientnet", "unet", "gru", "bert"]),
    ("fltrain.metrics", ["precision", "recall", "brier", "mcc"]),
    ("niidpart.strategies", ["cauchy", "weibull", "gender", "device"]),
    ("niidpart.sources", ["iris", "reddit", "sentiment140", "stackoverflow"]),
]


@pytest.mark.parametrize(("room", "asked", "near"), SLIPS)
def test_a_slip_is_answered_with_what_was_meant(room, asked, near):
    assert find_near(asked, list_names(room))[:2] == near


@pytest.mark.parametrize(("room", "asked"), [(room, name) for room, names in FAR for name in names])
def test_a_name_that_is_not_near_any_is_answered_with_no_guess(room, asked):
    assert find_near(asked, list_names(room)) == []


@pytest.mark.parametrize("asked", ["dropout", "patience", "save", "verbose", "temperature", "gpu"])
def test_an_option_that_there_is_not_is_no_other_one(asked):
    assert find_near(asked, SETTINGS) == []


def test_every_hint_leads_to_something_that_there_is():
    names = {*STRATEGIES.names(), *TRANSFORMS.names(), *fltrain.algorithms.ALGORITHMS.names()}
    names |= {option.name for _, option in STRATEGIES.all_options()}
    names |= {option.name for _, option in fltrain.algorithms.ALGORITHMS.all_options()}
    names |= {*signature(niidpart.make).parameters, *SETTINGS, *signature(fltrain.run).parameters}
    names |= {*signature(niidpart.load).parameters}
    names |= {"parties"}  # the command line's --parties
    names |= {*list_names("niidpart.sources"), *list_names("fltrain.metrics")}
    missing = {name for meant in SYNONYMS.values() for name in meant} - names
    assert not missing


def test_the_glossary_lists_them(project):
    text = (project / "docs" / "glossary.md").read_text()
    table = text.partition("| here | elsewhere |")[2]
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", table, re.MULTILINE)
    listed = {(word, ours) for ours, words in rows for word in words.split(", ")}
    assert listed == {(word, ours) for word, meant in SYNONYMS.items() for ours in meant}


def test_a_missing_module_is_had_by_its_package_wherever_niidpart_is_from(project):
    """The advice names a package that there is on the index, and an extra that has it; no other place advises."""
    extras = tomllib.loads((project / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for module in ("matplotlib", "torch", "sklearn.manifold", "PIL", "yaml", "pyarrow.parquet"):
        found = re.fullmatch(
            r"pip install (\S+) \(niidpart's extra \[(\w+)\] has .*\)", advise_on_missing(module)
        )
        assert any(needed.startswith(f"{found[1]}>=") for needed in extras[found[2]])
    assert advise_on_missing("no_module_of_ours") == ""
    sources = [p for room in ("niidpart", "fltrain", "cli") for p in (project / room).rglob("*.py")]
    assert [p.name for p in sources if "pip install 'niidpart" in p.read_text()] == []
