"""One party's examples of an open split file."""

import numpy as np
import pytest

import niidpart
from niidpart.features.examples import read_examples

RNG = np.random.default_rng(3)
X, Y = RNG.integers(0, 256, (200, 6, 5), dtype=np.uint8), RNG.integers(0, 4, 200)


@pytest.fixture(scope="module")
def data():
    return niidpart.from_arrays(X, Y, class_names=["ant", "bee", "cat", "dog"])


@pytest.fixture
def opened(data, tmp_path):
    """opened(**how): an open split file of the data."""
    held = []

    def make(**how):
        split = niidpart.make(data, "dir", n_parties=8, test=0.2, min_size=5, **how)
        held.append(niidpart.open(niidpart.write(split, tmp_path / "split.h5")))
        return split, held[-1]

    yield make
    for one in held:
        one.close()


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize(
    "transforms",
    [(), [("noise", {"sigma": 0.5}), ("noise", {"sigma": 0.1, "level": "std"})]],
    ids=["plain", "noise"],
)
def test_an_open_file_gives_what_the_whole_split_gives(part, transforms, data, opened):
    split, lazy = opened(transforms=transforms)
    for p in range(8):
        rows = split.parts[part].party(p).astype(np.int64)
        for found in (read_examples(lazy, data, p, part), read_examples(split, data, p, part)):
            assert (found.x == niidpart.transform(split, X[rows], p, rows)).all()
            assert (found.y == Y[rows]).all()
            assert (found.rows == rows).all()


def test_only_the_rows_of_that_party_are_asked_for(data, opened):
    from dataclasses import replace

    split, lazy = opened(transforms=[("noise", {})])
    asked = []
    watched = replace(data, features=lambda rows: asked.append(rows) or X[rows])
    read_examples(lazy, watched, 3)
    assert [rows.tolist() for rows in asked] == [split.train.party(3).tolist()]


def test_one_value_of_a_column(opened):
    split, lazy = opened(transforms=[("noise", {})])
    assert [lazy.party_values(p)["noise_std"] for p in range(8)] == split.columns[
        "noise_std"
    ].tolist()
    with pytest.raises(IndexError, match=r"0\.\.7"):
        lazy.party_values(8)
    with pytest.raises(KeyError):
        lazy.party_values(0)["noise"]


def test_a_hugging_face_data_set_of_one_party(data, opened):
    pytest.importorskip("datasets")
    pytest.importorskip("PIL")
    split, lazy = opened()
    found = niidpart.to_hf(lazy, 3, data=data)
    rows = split.train.party(3)
    assert found["row"][:] == rows.tolist()
    assert [found.features["label"].int2str(k) for k in found["label"]] == [
        data.class_names[k] for k in Y[rows]
    ]
    assert all(
        (np.asarray(image) == X[row]).all() for image, row in zip(found["image"], rows, strict=True)
    )


def test_noise_is_numbers_in_a_hugging_face_data_set(data, opened):
    pytest.importorskip("datasets")
    split, lazy = opened(transforms=[("noise", {"sigma": 0.5})])
    rows = split.test.party(7).astype(np.int64)
    assert (
        np.array(niidpart.to_hf(lazy, 7, "test", data=data)["x"][:], np.float32)
        == niidpart.transform(split, X[rows], 7, rows)
    ).all()


def test_the_data_is_found_where_the_file_says_and_opened_once(tmp_path):
    path = niidpart.write(
        niidpart.make(niidpart.load("digits"), "dir", n_parties=8), tmp_path / "split.h5"
    )
    with niidpart.open(path) as lazy:
        assert niidpart.open_data(lazy) is niidpart.open_data(lazy)
        assert len(read_examples(lazy, niidpart.open_data(lazy), 0).y) == lazy.train.sizes[0]
        with pytest.raises(IndexError, match=r"0\.\.7"):
            read_examples(lazy, niidpart.open_data(lazy), 8)


@pytest.mark.parametrize("p", ["a", True, 1.5, None])
def test_a_party_is_a_whole_number(p, data, opened):
    split, lazy = opened()
    for of in (split, lazy):
        with pytest.raises(ValueError, match=r"party is .*it must be a whole number"):
            read_examples(of, data, p)
    assert (read_examples(split, data, np.int64(3)).rows == split.train.party(3)).all()


def test_features_of_the_other_order_of_bytes_come_in_this_machines(tmp_path):
    x = RNG.normal(size=(200, 3)).astype(">f4")
    data = niidpart.from_arrays(x, Y)
    found = read_examples(niidpart.make(data, "homo", n_parties=2), data, 1)
    assert found.x.dtype.isnative
    assert (found.x == x[found.rows]).all()


def test_what_cannot_be_given_is_said(data, opened):
    split, lazy = opened(transforms=[("noise", {"fresh": True})])
    with pytest.raises(ValueError, match=r"drawn afresh in training.*lossy=True"):
        read_examples(lazy, data, 0)
    assert (
        read_examples(lazy, data, 0, lossy=True).x
        == X[split.train.party(0)].astype(np.float32) / np.float32(255)
    ).all()
    with pytest.raises(ValueError, match="no features"):
        read_examples(lazy, niidpart.from_arrays(None, Y), 0, lossy=True)
    with pytest.raises(ValueError, match="other labels"):
        read_examples(lazy, niidpart.from_arrays(X, (Y + 1) % 4), 0, lossy=True)
    with pytest.raises(ValueError, match="no part 'eval'"):
        read_examples(lazy, data, 0, "eval", lossy=True)
