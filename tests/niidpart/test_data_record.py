"""A data set is checked at the door, its arrays stay the caller's, and a source is a record."""

import re
import subprocess
import sys

import numpy as np
import pytest

import niidpart
from niidpart.data import SOURCES, Data, DataSource, from_columns

X = np.arange(24, dtype=np.uint8).reshape(6, 2, 2)
Y = np.array([0, 1, 2, 0, 1, 2])

BAD_DATA = [
    ({"labels": [0, 1, 2], "class_names": ["a", "b"]}, "labels are 0..2, and there are 2 names"),
    ({"labels": [-1, 0], "class_names": ["a"]}, "labels are -1..0, and there are 1 names"),
    ({"labels": [0.0, 1.0], "class_names": ["a", "b"]}, "labels are float64[2]; [N], one whole"),
    ({"labels": [[0, 1]], "class_names": ["a", "b"]}, "labels are int64[1, 2]; [N], one whole"),
    ({"labels": ["a"], "class_names": ["a"]}, "labels are <U1[1]; [N], one whole number"),
    ({"labels": [0], "class_names": "ab"}, "class_names is 'ab'; a list of texts is needed"),
    ({"labels": [0], "class_names": None}, "class_names is 'None'; a list of texts is needed"),
    ({"labels": [0], "class_names": [1]}, "class_names holds 1, which is no text"),
    ({"labels": [0], "class_names": ["a", "a"]}, "class_names holds a name twice"),
    ({"labels": [0], "class_names": ["a"], "groups": [1, 2]}, "groups are int64[2]; [N], 1 whole"),
    (
        {"labels": [0], "class_names": ["a"], "groups": [1], "group_names": ["g"]},
        "groups are 1..1, and there are 1 names",
    ),
    (
        {"labels": [0], "class_names": ["a"], "test_labels": [1]},
        "test_labels are 1..1, and there are",
    ),
    (
        {"labels": [0], "class_names": ["a"], "features": X},
        "features is no function that gives rows",
    ),
    (
        {"labels": [0], "class_names": ["a"], "test_features": X.__getitem__},
        "there are test_features and no test_labels",
    ),
    ({"labels": [0], "class_names": ["a"], "name": 3}, "name is '3', of type int; a str is needed"),
    (
        {"labels": [0], "class_names": ["a"], "params": []},
        "params is '[]', of type list; a dict is",
    ),
]


@pytest.mark.parametrize(("given", "message"), BAD_DATA, ids=[message for _, message in BAD_DATA])
def test_data_that_does_not_fit_together_is_refused(given, message):
    with pytest.raises(niidpart.UsageError, match=re.escape(message)):
        Data(**given)


def test_data_of_plain_lists_is_the_data_of_arrays():
    data = Data([0, 1, 1], ["a", "b"], groups=[5, 5, 7])
    assert data.labels.dtype == data.groups.dtype == np.int64
    assert data.class_names == ("a", "b")
    assert data.source == niidpart.from_arrays(None, ["a", "b", "b"]).source


def test_arrays_of_the_caller_stay_as_they_are():
    x, y, groups = X.copy(), Y.copy(), Y.copy()
    data = niidpart.from_arrays(x, y, x, y, groups=groups)
    niidpart.make(data, "homo", n_parties=2)
    direct = Data(y, ("a", "b", "c"), features=x.__getitem__, groups=groups)
    niidpart.make(direct, "group", n_parties=3, groups=groups)
    for array, before in ((x, X), (y, Y), (groups, Y)):
        assert array.flags.writeable
        assert np.array_equal(array, before)


def test_features_are_made_arrays_where_nothing_is_lost():
    wanted = niidpart.from_arrays(X / 2.0, Y)
    assert niidpart.from_arrays((X / 2.0).tolist(), Y.tolist()).source == wanted.source
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame({"a": [0.5, 1.0], "b": [1.5, 2.0]})
    assert niidpart.from_arrays(table, [0, 1]).features(slice(None)).tolist() == [
        [0.5, 1.5],
        [1.0, 2.0],
    ]


def test_tensors_are_made_arrays():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    wanted = niidpart.from_arrays(X, Y)
    assert niidpart.from_arrays(torch.tensor(X), torch.tensor(Y)).source == wanted.source
    with pytest.raises(niidpart.UsageError, match=r"features cannot be made an array .*grad"):
        niidpart.from_arrays(torch.zeros((6, 2), requires_grad=True), Y)


def sparse():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    return scipy_sparse.csr_matrix(np.eye(6, dtype=np.float32))


BAD_ARRAYS = [
    (lambda: (sparse(), Y), r"features are sparse; give .toarray\(\) of them"),
    (lambda: (np.ma.masked_equal(X, 3), Y), "features are a masked array; fill or drop"),
    (lambda: ([[1.0, 2.0], [3.0]], [0, 1]), "features cannot be made an array .*inhomogeneous"),
    (lambda: ("x", Y), "the training set has no rows of features and 6 labels"),
    (lambda: ([["a", "b"]], [0]), "features of the training set are <U1; uint8"),
    (lambda: (X, np.ma.masked_equal(Y, 1)), "labels are a masked array; fill or drop"),
    (lambda: (X, [[0], [1, 2]]), "labels cannot be made an array"),
    (lambda: (X, None), "labels are 'None'; one for each example is needed"),
]


@pytest.mark.parametrize(("build", "message"), BAD_ARRAYS, ids=[m for _, m in BAD_ARRAYS])
def test_what_is_no_array_is_refused_with_what_to_do(build, message):
    x, y = build()
    with pytest.raises(niidpart.UsageError, match=message):
        niidpart.from_arrays(x, y)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([1, 2, 3], "class_names holds 1, which is no text"),
        ("abc", "class_names is 'abc'; a list of texts"),
        (["a", "b"], "the labels have names for 0..1, and there are labels 2"),
    ],
)
def test_names_of_classes_are_texts_one_for_each(names, message):
    with pytest.raises(niidpart.UsageError, match=message):
        niidpart.from_arrays(X, Y, class_names=names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), r"of type NoneType; the name of a source.*niidpart.from_arrays"),
        ((X,), r"of type ndarray; the name of a source"),
        (("mnist", 3), r"root is of type int; the path of a folder or file is needed"),
    ],
)
def test_a_data_set_is_named_by_text(arguments, message):
    with pytest.raises(niidpart.UsageError, match=message):
        niidpart.load(*arguments)


def test_a_data_set_may_be_named_by_a_path(tmp_path):
    np.savez(tmp_path / "own.npz", x=X, y=Y)
    assert (
        niidpart.load(tmp_path / "own.npz").source
        == niidpart.load("npz", tmp_path / "own.npz").source
    )


# --- sources as records ---------------------------------------------------------------------------


def test_every_source_is_a_record_whose_function_has_its_name():
    for name in SOURCES.names():
        source = SOURCES.record(name)
        assert isinstance(source, DataSource)
        assert source.load is SOURCES.find(name)
        assert source.load.__name__ == {"csv": "csv_table"}.get(name, name.replace("-", "_"))


def test_a_later_option_that_is_misspelt_is_an_error():
    def load(root, *, any_size: bool = False):
        return from_columns([0, 1])

    assert DataSource(load=load, later=frozenset({"any_size"})).needs_root
    with pytest.raises(niidpart.UsageError, match="load has no option 'anysize', which later="):
        DataSource(load=load, later=frozenset({"anysize"}))
    with pytest.raises(TypeError, match="unexpected keyword argument 'latter'"):
        DataSource(load=load, latter=frozenset({"any_size"}))


def test_a_source_has_a_root():
    with pytest.raises(niidpart.UsageError, match=r"the first parameter of .* name it root"):
        DataSource(load=lambda folder: from_columns([0, 1]))
    assert not DataSource(load=lambda root=None: from_columns([0, 1])).needs_root


def test_a_later_option_is_stored_only_where_it_is_not_the_default(monkeypatch):
    def load(root=None, *, n: int = 2, flip: bool = False):
        return from_columns(range(n))

    source = DataSource(load=load, later=frozenset({"flip"}))
    monkeypatch.setattr(SOURCES, "record", lambda name: source)
    assert niidpart.load("own:load").params == {"n": 2}
    assert niidpart.load("own:load", flip=True).params == {"n": 2, "flip": True}


def test_a_source_of_ones_own_is_a_function_in_a_file(tmp_path):
    (tmp_path / "own.py").write_text(
        "from niidpart.data import from_columns\n\n"
        "def coins(root=None, *, n: int = 4):\n"
        "    return from_columns([k % 2 for k in range(n)], class_names=['head', 'tail'])\n"
    )
    data = niidpart.load(f"{tmp_path / 'own.py'}:coins", n=6)
    assert len(data.labels) == 6
    assert data.params == {"n": 6}


def test_a_split_does_not_wait_for_an_import_of_masked_arrays():
    code = """
import sys, numpy as np
before = "numpy.ma" in sys.modules  # older versions of numpy import it themselves
import niidpart
niidpart.make(np.arange(60) % 3, "dir", n_parties=2)
assert ("numpy.ma" in sys.modules) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
