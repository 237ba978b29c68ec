"""niidpart.registry: what an annotation says is checked, shown in the help, and hinted at."""

import sys
from typing import Annotated, Any, Literal

import pytest

import niidpart
from niidpart.registry import (
    SYNONYMS,
    Above,
    AtLeast,
    AtMost,
    Below,
    RecordRegistry,
    Registry,
    UnimportedRegistry,
    coerce,
    did_you_mean,
)

STRATEGIES = Registry("niidpart.strategies", "strategy")


def entry(*, mu: Annotated[float, "Weight.", AtLeast(0), Below(1)] = 0.5, k: int = 1, free="text"):
    pass


def test_an_option_is_what_its_annotation_says():
    options = STRATEGIES.options(entry)
    assert [*options] == ["mu", "k", "free"]
    assert options["mu"].help == "Weight. At least 0 and below 1."
    assert options["mu"].annotation is float
    assert options["mu"].ranges == (AtLeast(0), Below(1))
    assert options["k"].help == ""
    assert options["free"].annotation is str  # not annotated: the type of its default


@pytest.mark.parametrize(
    ("bound", "inside", "outside"),
    [(AtLeast(2), 2, 1), (Above(2), 3, 2), (AtMost(2), 2, 3), (Below(2), 1, 2)],
)
def test_a_range_holds_for_numbers_and_for_each_of_a_list(bound, inside, outside):
    assert coerce("k", inside, int, [bound]) == inside
    assert coerce("k", [inside], tuple[int, ...], [bound]) == (inside,)
    assert coerce("k", None, int | None, [bound]) is None
    for value, annotation in ((outside, int), ([inside, outside], tuple[int, ...])):
        with pytest.raises(niidpart.UsageError, match=rf"k is {outside}; it must be {bound}"):
            coerce("k", value, annotation, [bound])


def test_a_number_out_of_range_is_told_what_the_option_means():
    option = STRATEGIES.options(entry)["mu"]
    with pytest.raises(niidpart.UsageError) as caught:
        option.check("mu", 1)
    assert str(caught.value) == "mu is 1; it must be at least 0 and below 1 (Weight.)"


@pytest.mark.parametrize(
    ("bound", "words"),
    [(2**63 - 1, "2**63-1"), (2**63, str(2**63)), (1023, "1023"), (1e9, "1e+09"), (0, "0")],
)
def test_a_large_bound_is_written_as_a_power(bound, words):
    assert str(AtMost(bound)) == f"at most {words}"


@pytest.mark.parametrize(
    "annotation", [list[float], Any, dict[str, int], int | str, tuple[int, int], object]
)
def test_an_annotation_that_cannot_be_checked_is_refused(annotation):
    def odd(*, option=None):
        pass

    odd.__annotations__["option"] = annotation
    with pytest.raises(niidpart.UsageError, match=r"'odd': option 'option'.*cannot be checked"):
        STRATEGIES.options(odd)


@pytest.mark.parametrize(
    "annotation", [int, float, bool, str, Literal["a"], int | None, tuple[float, ...]]
)
def test_an_annotation_that_can_be_checked_is_taken(annotation):
    def good(*, option=None):
        pass

    good.__annotations__["option"] = annotation
    assert STRATEGIES.options(good)["option"].annotation == annotation


def test_the_fields_words_lead_to_ours():
    names = ["homo", "dir", "labels", "shards", "group"]
    assert did_you_mean("iid", names).startswith("did you mean 'homo'?")
    assert did_you_mean("Pathological", names).startswith("did you mean 'labels' or 'shards'?")
    assert did_you_mean("labls", names).startswith("did you mean 'labels'?")
    assert did_you_mean("xyzzy", names) == "there are: homo, dir, labels, shards, group"
    assert did_you_mean("--learning-rate", ["lr", "momentum"]).startswith("did you mean 'lr'?")
    assert did_you_mean("num_clients", ["n_parties"]).startswith("did you mean 'n_parties'?")


def test_no_synonym_is_spelt_as_another_spelling_of_itself():
    for word, meant in SYNONYMS.items():
        assert word == word.lower().replace("_", "-"), f"{word} is never looked up"
        assert meant


class Thing:
    def __init__(self, act):
        self.act = act


def test_a_file_without_a_record_of_its_type_is_an_error():
    registry = RecordRegistry("niidpart.strategies", "thing", Thing, "act")
    with pytest.raises(TypeError, match=r"dir\.py has no ENTRY, a Thing"):
        registry.record("dir")


@pytest.mark.parametrize("extra", ["AtMost(20)", AtMost, 3])
def test_what_stands_behind_the_text_is_a_range(extra):
    def odd(*, s: float = 1.0):
        pass

    odd.__annotations__["s"] = Annotated[float, "Exponent.", extra]
    with pytest.raises(niidpart.UsageError, match=r"'odd': option 's': .* is no range"):
        STRATEGIES.options(odd)


@pytest.mark.parametrize("package", ["niidpart.strategies", "fltrain.algorithms"])
def test_what_is_read_off_a_source_is_what_an_import_gives(package):
    if package.startswith("fltrain"):
        pytest.importorskip("torch")
    given = frozenset({"groups", "features", "seed", "n_parties", "rng"})
    imported = Registry(package, "entry", given)
    read = UnimportedRegistry(package, "entry", given)
    assert read.names() == imported.names()
    for name in imported.names():
        assert read.summary(name) == imported.summary(name)
        assert read.options(read.find(name)) == imported.options(imported.find(name))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """fill(the entry's text): a package with that one entry, whose name is returned."""
    name = f"entries_of_{tmp_path.name}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    def fill(text):
        (tmp_path / name / "one.py").write_text(text)
        return name

    yield fill
    for module in (name, f"{name}.one"):
        sys.modules.pop(module, None)


def test_a_source_is_read_without_what_it_does(package):
    text = "from time import none_such\nMU = 3\n\ndef one(mu: int = MU):\n    '''One.'''\n"
    name = package(text)
    registry = UnimportedRegistry(name, "entry")
    assert registry.summary("one") == "One."
    assert registry.options(registry.find("one"))["mu"].default == 3
    with pytest.raises(ImportError):
        Registry(name, "entry").find("one")


def test_an_annotation_that_the_source_does_not_give_is_had_by_an_import(package):
    text = "for MU in (3, 4):\n    pass\n\ndef one(mu: int = MU):\n    '''One.'''\n"
    registry = UnimportedRegistry(package(text), "entry")
    assert registry.options(registry.find("one"))["mu"].default == 4


def test_a_name_that_no_source_has_is_refused_with_the_nearest():
    with pytest.raises(niidpart.UsageError, match="did you mean 'homo'"):
        UnimportedRegistry("niidpart.strategies", "strategy").find("homoo")


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_that_no_float_holds_is_a_wrong_value(kind, digits):
    """Of a damaged configuration: Python raises OverflowError and ValueError for such numbers."""
    with pytest.raises(
        niidpart.UsageError, match="lr is a whole number of more than 60 digits; it must be"
    ):
        coerce("lr", 10**digits, kind, (AtMost(5),))
