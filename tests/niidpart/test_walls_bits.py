"""The ten-year promise of one digest: nothing that makes a split may depend on the machine.

Read off the source, so that `np.exp` in a new strategy fails on the machine where it happens to
give the same bits.
"""

import pytest
from exactness import EXACT, KNOWN, find_offences

# What a digest depends on. New files in these folders are found by themselves.
GUARDED = (
    "arithmetic/*.py",
    "arithmetic/numpy_draws/*.py",
    "strategies/*.py",
    "transforms/*.py",
    "disk/*.py",
    "streaming/*.py",
    "making/completion.py",
    "making/deals.py",
    "making/derivation.py",
    "making/holdouts.py",
    "making/owners.py",
    "features/transforming.py",
    "splits/digests.py",
    "splits/part.py",
    "splits/recipe.py",
    "data/columns.py",
    "data/long_tail.py",
    "features/relabelling.py",
    "data/treatment/*.py",
    "sources/digits_sources.py",
    "sources/fcube.py",
)

# Places that are exact all the same, or are known not to be: {(file, code): why}.
ALLOWED = {
    ("arithmetic/exact.py", "np.cumsum(x, axis=-1)"): "a cumulative sum adds in order",
    ("arithmetic/shares.py", "np.partition"): "of integers, and only the k-th value is looked at",
    ("arithmetic/rng.py", "np.random.Philox"): "raw words, which numpy promises",
    ("disk/arrays.py", "np.memmap"): "the bytes of a file, not computed",
    ("strategies/_clusters.py", "points @ last"): "whole numbers that sum below 2^53",
    ("strategies/_clusters.py", "belongs @ points"): "whole numbers that sum below 2^53",
    ("strategies/_clusters.py", "points @ centres.T"): "whole numbers that sum below 2^53",
    ("arithmetic/numpy_draws/legacy.py", "np.random.RandomState"): "a replay; its stream is frozen",
    ("arithmetic/numpy_draws/legacy.py", "np.random.MT19937"): "seeded at once by the above",
    ("arithmetic/numpy_draws/legacy.py", "np.random.SeedSequence"): "its words are overwritten",
    ("arithmetic/numpy_draws/pythons.py", "np.random.RandomState"): "words of a frozen stream",
    ("arithmetic/numpy_draws/modern.py", "np.random.PCG64"): "raw words, which numpy promises",
    ("arithmetic/numpy_draws/floats.py", "math.log"): "a replay, promised on one C library only",
    ("arithmetic/numpy_draws/floats.py", "math.log1p"): "a replay, promised on one C library only",
    ("arithmetic/numpy_draws/floats.py", "math.exp"): "a replay, promised on one C library only",
    ("arithmetic/numpy_draws/floats.py", "math.pow"): "a replay, promised on one C library only",
    ("strategies/_pfllib_rules.py", "sum(sizes)"): "python integers",
    ("strategies/hypergeometric.py", "sum(law)"): "python integers of any size",
    ("strategies/hypergeometric.py", "sum(law[:n_classes])"): "python integers of any size",
}


def guarded(project):
    """{file below niidpart/: source}."""
    root = project / "niidpart"
    paths = [path for pattern in GUARDED for path in sorted(root.glob(pattern))]
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def test_what_a_digest_depends_on_gives_the_same_bits_everywhere(project):
    found = {
        (file, offence.code): f"niidpart/{file}:{offence.line}: {offence.code} {offence.why}"
        for file, source in guarded(project).items()
        for offence in find_offences(source)
    }
    assert [text for place, text in found.items() if place not in ALLOWED] == []
    assert [place for place in ALLOWED if place not in found] == [], "no longer needed"


def test_every_file_that_is_guarded_exists(project):
    files = guarded(project)
    assert {"strategies/dir.py", "transforms/noise.py", "arithmetic/rng.py"} <= files.keys()
    for pattern in GUARDED:
        assert list((project / "niidpart").glob(pattern)), f"there is no {pattern}"


HEAD = "import math, random\nimport numpy as np\nfrom numpy import exp\nfrom math import log\n"


@pytest.mark.parametrize(
    "code",
    [
        "np.exp(x)",
        "exp(x)",
        "np.log(x)",
        "np.log1p(x)",
        "np.power(x, 2)",
        "np.sin(x)",
        "np.tanh(x)",
        "np.hypot(x, y)",
        "np.linalg.norm(x)",
        "np.random.default_rng(0)",
        "np.add.reduce(x)",
        "np.mean(x)",
        "np.einsum('i,i', x, y)",
        "np.interp(x, y, y)",
        "np.linspace(0, 1, n)",
        "math.exp(1.5)",
        "math.hypot(a, b)",
        "log(1.5)",
        "random.random()",
        "x.sum()",
        "x.sum(axis=0)",
        "x.sum(dtype=np.float64)",
        "np.sum(x)",
        "np.cumsum(x)",
        "x.prod()",
        "x.mean()",
        "x.std(axis=1)",
        "x.var()",
        "x.dot(y)",
        "x @ y",
        "x ** 2",
        "2.0 ** -52",
        "2 ** n",
        "pow(x, y)",
        "sum(x)",
        "np.argsort(x)",
        "x.argsort(kind='quicksort')",
        "np.argpartition(x, 3)",
        "np.bincount(x, weights=w)",
        "np.bincount(x, w)",
    ],
)
def test_the_wall_sees_what_may_differ(code):
    inside = f"{HEAD}def strategy(labels, n_parties, rng):\n    owner = [{code} for _ in labels]\n"
    assert find_offences(inside), code


@pytest.mark.parametrize(
    "statement", ["x @= y", "x **= 2", "f = np.exp", "import scipy.special as s; s.erf"]
)
def test_the_wall_sees_statements_and_names_that_are_not_called(statement):
    assert find_offences(HEAD + statement), statement


@pytest.mark.parametrize(
    "code",
    [
        "exact.exp(x)",
        "exact.log(x) + np.sqrt(y)",
        "np.rint(p / p.max() * 1024.0).astype(np.int64)",
        "counts.sum(axis=1, dtype=np.int64)",
        "np.cumsum(sizes, dtype=np.int64)",
        "np.count_nonzero(x)",
        "np.argsort(x, kind='stable')",
        "np.bincount(x, minlength=3)",
        "10**9 + math.comb(10, 3)",
        "math.prod(x.shape)",
        "rng.normal(10)",
        "np.subtract.at(left, party, taken)",
    ],
)
def test_the_wall_lets_through_what_is_exact(code):
    assert find_offences(f"{HEAD}from ..arithmetic import exact\n{code}\n") == []


def test_an_offence_says_where_and_what_to_do():
    (offence,) = find_offences(f"{HEAD}x = 1\ny = np.exp(x)\n")
    assert (offence.line, offence.code) == (6, "np.exp")
    assert "niidpart.arithmetic" in offence.why


def test_numpy_has_all_that_is_known_to_be_exact():
    import math

    import numpy as np

    assert sum(len(names.split()) for names in EXACT.values()) == len(KNOWN), "a name twice"
    for name in KNOWN:
        thing = math if name.startswith("math.") else np
        for part in name.removeprefix("math.").split("."):
            assert hasattr(thing, part), name
            thing = getattr(thing, part)
