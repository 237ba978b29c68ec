"""A split in memory and one in an open file answer the same names with the same types."""

import json
from dataclasses import replace

import numpy as np
import pytest

import niidpart

RNG = np.random.default_rng(5)
DATA = niidpart.from_arrays(RNG.random((200, 4), dtype=np.float32), RNG.integers(0, 4, 200))


def members(protocol):
    return sorted(n for n in vars(protocol) if not n.startswith("_") and n != "register")


@pytest.fixture(scope="module")
def split():
    return niidpart.make(
        DATA, "dir", n_parties=6, min_size=4, val=0.2, transforms=[("noise", {"sigma": 0.3})]
    )


@pytest.fixture
def opened(split, tmp_path):
    with niidpart.open(niidpart.write(split, tmp_path / "split.h5")) as opened:
        yield opened


def told(view):
    """All that a split answers, as values with their types."""
    parts = {}
    for name, part in view.parts.items():
        each = [(array(part.party(p)), array(part.party_counts(p))) for p in range(view.n_parties)]
        parts[name] = (part.n, part.n_parties, array(part.sizes), array(part.counts), each)
    draws = {k: array(a) for k, a in sorted(view.draws.items()) if a.size}  # empty: not stored
    columns = {k: array(a) for k, a in sorted(view.columns.items())}
    values = [sorted(view.party_values(p).items()) for p in range(view.n_parties)]
    about = (view.recipe, view.source, view.root, view.digest, view.n_parties)
    return about, parts, draws, columns, values, view.skew.to_json(), array(view.skew.map_beta)


def array(a):
    assert type(a) is np.ndarray  # no subclass, which could do more
    return a.dtype.str, a.tolist()


def test_an_open_file_answers_as_the_split_in_memory(split, opened):
    assert told(opened) == told(split)
    assert isinstance(opened.skew, niidpart.Skew)


def test_both_have_every_name_of_the_views(split, opened):
    assert {"columns", "draws", "skew", "party_values"} <= set(members(niidpart.SplitView))
    for view in (split, opened):
        for name in members(niidpart.SplitView):
            assert hasattr(view, name), name
        for part in view.parts.values():
            for name in members(niidpart.PartView):
                assert hasattr(part, name), name


def test_a_function_that_reads_takes_either(split, opened):
    x, rows = DATA.features(split.train.party(2)), split.train.party(2).astype(np.int64)
    assert (niidpart.transform(opened, x, 2, rows) == niidpart.transform(split, x, 2, rows)).all()


def test_the_old_names_of_an_open_file_work_and_say_the_new_ones(split, opened):
    with pytest.warns(FutureWarning, match=r"now opened\.columns\[name\]"):
        assert (opened.column("noise_std") == split.columns["noise_std"]).all()
    with pytest.warns(FutureWarning, match=r"now opened\.party_values\(p\)\[name\]"):
        assert opened.column_of("noise_std", 4) == split.columns["noise_std"][4]
    with pytest.warns(FutureWarning, match=r"now opened\.draws\[name\]"):
        assert (opened.draw("proportions") == split.draws["proportions"]).all()
    with pytest.warns(FutureWarning, match=r"now opened\.skew\.map_beta"):
        assert (opened.map_beta() == split.skew.map_beta).all()
    with pytest.warns(FutureWarning, match=r"now opened\.skew\.to_json\(\)\['n_empty'\]"):
        assert opened.skew["n_empty"] == split.skew.n_empty
    assert list(opened.columns) == sorted(split.columns)


def test_the_old_ways_to_data_and_hugging_face_work(tmp_path):
    pytest.importorskip("datasets")
    split = niidpart.make(niidpart.load("digits"), "dir", n_parties=5)
    with niidpart.open(niidpart.write(split, tmp_path / "split.h5")) as opened:
        with pytest.warns(FutureWarning, match=r"now niidpart\.open_data"):
            assert opened.data() is niidpart.open_data(opened)
        with pytest.warns(FutureWarning, match=r"now niidpart\.to_hf"):
            table = opened.train.hf(1)
    assert table["row"][:] == niidpart.to_hf(split, 1)["row"][:] == split.train.party(1).tolist()


@pytest.mark.parametrize(
    "edit",
    [
        lambda table: table | {"n_empty": "none"},
        lambda table: table | {"map_beta": table["map_beta"] | {"overall": "high"}},
        lambda table: table | {"measures": [{"name": "mine", "form": "", "version": 1}]},
        lambda table: table | {"measures": [m | {"raw": "?"} for m in table["measures"]]},
    ],
)
def test_skew_in_terms_of_another_version_is_computed(edit, small_split, tampered, manifest):
    def change(f):
        table = json.loads(f["skew/table"][()].tobytes())
        del f["skew/table"]
        raw = json.dumps(edit(table)).encode()
        f.create_dataset("skew/table", data=np.frombuffer(raw, np.uint8), chunks=(len(raw),))

    with niidpart.open(tampered(change)) as opened:
        assert opened.skew.to_json() == small_split.skew.to_json()


def test_constructors_leave_the_callers_arrays_alone(split):
    indptr, indices = np.array([0, 2, 3]), np.array([4, 7, 1], np.int32)
    counts = np.array([[1, 1], [0, 1]], np.int32)
    part = niidpart.Part(indptr, indices, counts)
    assert all(a.flags.writeable for a in (indptr, indices, counts))
    for own, a in zip((indptr, indices, counts), vars(part).values(), strict=True):
        assert not a.flags.writeable
        assert np.shares_memory(own, a)
    column, columns = np.arange(6.0), {}
    columns["level"] = column
    fields = {name: getattr(split, name) for name in ("recipe", "source", "train", "val", "test")}
    made = niidpart.FederatedSplit(**fields, draws={}, columns=columns)
    assert column.flags.writeable
    assert columns["level"] is column
    assert not made.columns["level"].flags.writeable


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"indptr": np.array([0, 2, 3], np.int32)}, r"indptr is int32\[3\]; int64\[P\+1\]"),
        ({"indptr": np.array([0, 2, 4])}, "indptr must rise from 0 to the 3 rows"),
        ({"indptr": np.array([1, 2, 3])}, "indptr must rise"),
        ({"indptr": np.array([0, 4, 3])}, "indptr must rise"),
        ({"indptr": [0, 2, 3]}, "indptr is list; a numpy array is needed"),
        ({"indices": np.array([4.0, 7.0, 1.0])}, r"indices is float64\[3\]"),
        ({"counts": np.zeros((3, 2), np.int32)}, "counts has 3 rows; one for each of 2 parties"),
        ({"counts": np.zeros((2, 2), np.int64)}, r"counts is int64\[2, 2\]"),
        ({"indices": np.array([-7, 4, 1], np.int32)}, "the row -7; rows are numbered from 0"),
        ({"indices": np.array([7, 4, 1], np.int32)}, "has 7 and then 4 at party 0; .* must ascend"),
        ({"indices": np.array([4, 4, 1], np.int32)}, "has 4 and then 4 at party 0; .* once"),
        ({"counts": np.array([[3, -1], [0, 1]], np.int32)}, "counts has -1; .* at least 0"),
        ({"counts": np.array([[1, 1], [1, 1]], np.int32)}, "party 1 sum to 2; .* its 1 rows"),
    ],
)
def test_a_part_whose_arrays_do_not_fit_is_refused(change, match):
    arrays = {
        "indptr": np.array([0, 2, 3]),
        "indices": np.array([4, 7, 1], np.int32),
        "counts": np.array([[1, 1], [0, 1]], np.int32),
    }
    niidpart.Part(**arrays)
    with pytest.raises(niidpart.UsageError, match=match):
        niidpart.Part(**arrays | change)


def test_rows_of_a_part_are_checked_over_the_bounds_of_blocks():
    n, middle = 3 << 18, 1 << 18  # three blocks
    rows = np.arange(n)
    counts = np.array([[n]], np.int32)
    niidpart.Part(np.array([0, n]), rows, counts)
    for place in (1, middle - 1, middle, middle + 1, n - 1):
        wrong = rows.copy()
        wrong[place] = wrong[place - 1]
        with pytest.raises(niidpart.UsageError, match=f"{place - 1} and then {place - 1} at party"):
            niidpart.Part(np.array([0, n]), wrong, counts)
        parted = np.array([[place], [n - place]], np.int32)  # the next party begins there
        niidpart.Part(np.array([0, place, n]), wrong, parted)


def test_a_split_whose_fields_do_not_fit_is_refused(split):
    fields = {name: getattr(split, name) for name in ("recipe", "source", "train", "val", "test")}
    with pytest.raises(niidpart.UsageError, match=r"'level' has shape \[5\]; \[6\] is needed"):
        niidpart.FederatedSplit(**fields, draws={}, columns={"level": np.zeros(5)})
    for change, message in [
        ({"train": 3}, "train is 3; a Part is needed"),
        ({"recipe": "dir"}, "recipe is 'dir'; a Recipe is needed"),
        ({"source": None}, "source is None; a Source is needed"),
        ({"draws": None}, "draws is None; a Mapping is needed"),
        ({"columns": [1]}, "columns is of the type list; a Mapping is needed"),
    ]:
        with pytest.raises(niidpart.UsageError, match=message):
            replace(split, **change)
    two = niidpart.make(DATA, "homo", n_parties=2)
    with pytest.raises(niidpart.UsageError, match="train has 2 parties, the recipe has 6"):
        niidpart.FederatedSplit(**fields | {"train": two.train}, draws={}, columns={})
