"""Data sources: what is read is what lies there, in each of the forms that people keep it in, or an error that says what is needed."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import niidpart
from niidpart.data import SOURCES, class_ids


def test_digits_are_those_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.datasets", reason="scikit-learn, which digits are compared with, is not installed")
    theirs = sklearn.load_digits()
    data = niidpart.load("digits")
    source = data.source
    assert (source.name, source.n, source.n_test, source.class_names) == ("digits", 1437, 360, tuple("0123456789"))
    x = np.concatenate([data.features(slice(None)), data.test_features(slice(None))])
    assert x.dtype == np.float32
    assert np.array_equal(x, (theirs.images / 16).astype(np.float32))
    assert np.array_equal(np.concatenate([data.labels, data.test_labels]), theirs.target)


def test_fcube_is_the_cube_of_the_paper():
    data = niidpart.load("fcube")
    source = data.source
    x, x_test = data.features(slice(None)), data.test_features(slice(None))
    assert (source.n, source.n_test, source.class_names, source.params) == (4000, 1000, ("0", "1"), {"data_seed": 0})
    assert (x.shape, x_test.shape, x.dtype) == ((4000, 3), (1000, 3), np.float32)
    for points, labels in ((x, data.labels), (x_test, data.test_labels)):
        assert np.abs(points).max() <= 1
        assert np.array_equal(labels == 0, points[:, 0] > 0)
    octant = (x < 0) @ np.array([4, 2, 1])
    assert np.array_equal(octant, data.groups)
    assert np.bincount(octant).tolist() == [500] * 8
    assert np.abs(np.abs(x).mean(axis=0) - 0.5).max() < 4.5 * (1 / 12 / 4000) ** 0.5  # |x| is uniform on (0, 1)
    assert np.abs(x_test.mean(axis=0)).max() < 4.5 * (1 / 3 / 1000) ** 0.5
    other = niidpart.load("fcube", data_seed=1)
    assert not (other.features(slice(None)) == x).all(axis=1).any()


def test_rows_are_read_in_the_order_asked_for():
    data = niidpart.load("digits")
    rows = np.array([5, 1, 1400])
    assert np.array_equal(data.features(rows), data.features(slice(None))[rows])


def test_a_source_tells_other_data_apart():
    x, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2
    same = niidpart.from_arrays(x, y).source
    assert niidpart.from_arrays(x.copy(), y.astype(np.uint8)).source == same
    for other in (
        niidpart.from_arrays(x + 1, y),
        niidpart.from_arrays(x.astype(np.float32), y),
        niidpart.from_arrays(x.reshape(6, 2, 1), y),
        niidpart.from_arrays(x, y, x, y),
        niidpart.from_arrays(x, 1 - y),
    ):
        assert other.source != same
    shared = np.asfortranarray(x)
    assert niidpart.from_arrays(shared, y).source == same  # the order in memory is no part of the data


# --- labels -----------------------------------------------------------------------------------------------------------------------


integers = st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
columns = (
    integers.flatmap(lambda kind: hnp.arrays(kind, st.integers(1, 40))) | hnp.arrays(bool, st.integers(1, 40)) | hnp.arrays("U3", st.integers(1, 40))
)


@given(columns)
def test_classes_are_the_sorted_distinct_labels(labels):
    ids, names = class_ids(labels)
    distinct, expected = np.unique(labels, return_inverse=True)
    assert names == tuple(str(k) for k in distinct.tolist())
    assert ids.dtype == np.int64
    assert np.array_equal(ids, expected)


@pytest.mark.parametrize(
    "labels", [np.array([-100, 100, 0], np.int8), np.array([-30000, 30000], np.int16), np.array([-(2**31), 2**31 - 1], np.int32)]
)
def test_small_integers_may_span_more_than_their_type_holds(labels):
    assert class_ids(labels)[1] == tuple(map(str, sorted(labels.tolist())))


def test_labels_may_be_a_list_or_python_strings():
    assert class_ids(["b", "a", "b"])[1] == ("a", "b")
    assert class_ids(np.array(["b", "a"], object))[0].tolist() == [1, 0]
    assert class_ids([3, 1, 3])[0].tolist() == [1, 0, 1]


def test_labels_of_the_test_set_have_the_ids_of_the_training_set():
    data = niidpart.from_arrays(None, ["c", "a", "b"], None, ["c", "b", "c"])
    assert data.test_labels.tolist() == [2, 1, 2]


# --- .npz -------------------------------------------------------------------------------------------------------------------------


X, Y = np.arange(24, dtype=np.uint8).reshape(6, 2, 2), np.arange(6) % 3
KEYS = [
    {"x": X, "y": Y},
    {"x": X, "y": Y, "x_test": X[:2], "y_test": Y[:2]},
    {"x_train": X, "y_train": Y},
    {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]},
    {"y": Y},
    {"y_train": Y.astype(str), "y_test": Y[:2].astype(str)},
    {"x": X, "y": Y, "more": np.arange(2)},
]


@pytest.mark.parametrize("arrays", KEYS, ids=lambda arrays: ",".join(arrays))
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_is_read_by_its_keys(arrays, save, tmp_path):
    save(tmp_path / "data.npz", **arrays)
    data = niidpart.load(str(tmp_path / "data.npz"))
    source = data.source
    assert source == niidpart.load("npz", tmp_path / "data.npz").source
    assert data.root == str(tmp_path / "data.npz")
    assert (source.name, source.n, source.class_names) == ("npz", 6, ("0", "1", "2"))
    assert source.n_test == (2 if "y_test" in arrays else 0)
    assert np.array_equal(data.labels, Y)
    with_features = "x" in arrays or "x_train" in arrays
    assert (data.features is not None) == with_features
    if with_features:
        assert np.array_equal(data.features(np.array([3, 0])), X[[3, 0]])
    if "x_test" in arrays:
        assert np.array_equal(data.test_features(slice(None)), X[:2])


def npz_bytes(tmp_path, **arrays):
    np.savez(tmp_path / "whole.npz", **arrays)
    return (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("damage", ["cut", "header", "value", "npy", "text", "empty"])
def test_a_damaged_npz_is_an_error_that_names_it(damage, tmp_path):
    raw = bytearray(npz_bytes(tmp_path, x=np.zeros((50, 2)), y=np.arange(50)))
    if damage == "cut":
        raw = raw[: len(raw) // 2]
    elif damage == "header":
        raw[60] ^= 0xFF
    elif damage == "value":
        raw[300] ^= 0xFF
    elif damage == "npy":
        np.save(tmp_path / "one.npy", np.arange(3))
        raw = (tmp_path / "one.npy").read_bytes()
    else:
        raw = b"some text" if damage == "text" else b""
    (tmp_path / "data.npz").write_bytes(raw)
    with pytest.raises(ValueError, match=r"data\.npz"):
        niidpart.load(str(tmp_path / "data.npz"))


BAD_NPZ = [
    ({"x": X}, r"has the keys x; 'y' \(or 'y_train'\) is needed"),
    ({"x": X[:5], "y": Y}, r"5 rows of features and 6 labels"),
    ({"x": X, "y": Y, "x_test": X, "y_test": Y[:2]}, r"test set has 6 rows of features and 2 labels"),
    ({"x": X, "y": Y, "x_test": X}, r"test set has 6 rows of features and 0 labels"),
    ({"x": X, "y": np.array([None] * 6, object)}, r"'y' cannot be read .*; save plain numbers"),
    ({"x": np.array([None] * 6, object), "y": Y}, r"'x' cannot be read"),
    ({"x": X, "y": Y, "y_test": np.array([3])}, r"test set has labels that the training set lacks: 3"),
    ({"x": X.astype(int), "y": Y}, r"are int64; uint8 \(divided by 255\) or floats are needed"),
    ({"x": np.full((6, 2), np.nan), "y": Y}, r"hold 12 NaN; fill or drop these rows first"),
    ({"x": np.zeros((6, 2, 2, 2)), "y": Y}, r"shape \(6, 2, 2, 2\); \[N, D\], \[N, H, W\] or"),
    ({"x": np.zeros(6), "y": Y}, r"shape \(6,\)"),
    ({"x": np.array(1.0), "y": Y}, r"features"),
    ({"y": np.array(3)}, r"labels have shape \(\)"),
]


@pytest.mark.parametrize(("arrays", "message"), BAD_NPZ)
def test_an_npz_that_cannot_be_used_is_refused_with_what_is_needed(arrays, message, tmp_path):
    (tmp_path / "data.npz").write_bytes(npz_bytes(tmp_path, **arrays))
    with pytest.raises(ValueError, match=message):
        niidpart.load(str(tmp_path / "data.npz"))


def test_a_pickle_in_an_npz_is_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").touch, ())

    (tmp_path / "data.npz").write_bytes(npz_bytes(tmp_path, y=np.array([Trap()] * 3, object)))
    with pytest.raises(ValueError, match="cannot be read"):
        niidpart.load(str(tmp_path / "data.npz"))
    assert not (tmp_path / "ran").exists()


# --- idx --------------------------------------------------------------------------------------------------------------------------


FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
IMAGES, LABELS = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3), np.array([7, 2, 7, 0, 2], np.uint8)


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def lay(folder, zipped=False, **over):
    """The four files in a folder; `over` replaces the bytes of one by its place, such as f0=b""."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, (name, array) in enumerate(zip(FILES, (IMAGES, LABELS, IMAGES[:2], LABELS[:2]), strict=True)):
        raw = over.get(f"f{i}", idx(array))
        (folder / (name + ".gz" * zipped)).write_bytes(gzip.compress(raw) if zipped else raw)


@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fmnist", "FashionMNIST"), ("kmnist", "KMNIST")])
@pytest.mark.parametrize("place", ["", "raw", "{}", "{}/raw"])
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files_are_found_in_each_layout(name, folder, place, zipped, tmp_path):
    lay(tmp_path / place.format(folder), zipped)
    data = niidpart.load(name, tmp_path)
    source = data.source
    assert (source.name, source.n, source.n_test, source.class_names) == (name, 5, 2, ("0", "2", "7"))
    assert np.array_equal(data.features(np.array([4, 1])), IMAGES[[4, 1]])
    assert data.labels.tolist() == [2, 1, 2, 0, 1]
    assert np.array_equal(data.test_features(slice(None)), IMAGES[:2])


def test_the_folder_of_the_data_set_comes_before_the_root(tmp_path):
    lay(tmp_path / "FashionMNIST" / "raw")
    lay(tmp_path, f1=idx(LABELS + 1))
    assert niidpart.load("fmnist", tmp_path).class_names == ("0", "2", "7")


BAD_IDX = [
    b"",
    b"\0\0",
    b"\0\0\x08",
    b"\0\0\x08\x03",
    idx(IMAGES)[:-1],
    idx(IMAGES) + b"\0",
    b"\0\0\x0d" + idx(IMAGES)[3:],
    b"\0\0\x08\0a",
    b"\0\0\x08\x03" + b"\xff" * 12,
    b"\0\0\x08\x04" + bytes.fromhex("80000000 80000000 00000004 00000004"),  # 2**66 values: nothing, in 64 bits
    b"<html>not found</html>",
]


@pytest.mark.parametrize("raw", BAD_IDX)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_damaged_idx_file_is_an_error_that_names_it(raw, zipped, tmp_path):
    lay(tmp_path, zipped, f0=raw)
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte.*fetch it again"):
        niidpart.load("mnist", tmp_path)


@pytest.mark.parametrize("offset", [0, 3, 10, 15, 20, 40, -8, -1])
def test_a_damaged_gz_is_an_error_that_names_it(offset, tmp_path):
    lay(tmp_path, zipped=True)
    path = tmp_path / f"{FILES[0]}.gz"
    raw = bytearray(path.read_bytes())
    raw[offset] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz .*fetch it again"):
        niidpart.load("mnist", tmp_path)


def test_a_missing_companion_is_an_error_that_says_where_was_looked(tmp_path):
    lay(tmp_path / "MNIST" / "raw")
    (tmp_path / "MNIST" / "raw" / FILES[3]).unlink()
    with pytest.raises(FileNotFoundError, match=r"MNIST was not found: .*MNIST/raw.*torchvision"):
        niidpart.load("mnist", tmp_path)


# Counts of the published files: MNIST from LeCun et al., FashionMNIST is even by construction.
MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@pytest.mark.parametrize(("name", "counts", "first"), [("mnist", MNIST_COUNTS, 5), ("fmnist", [6000] * 10, 9)])
def test_real_images_are_read(name, counts, first, data_folder):
    try:
        data = niidpart.load(name, data_folder / name)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert (data.source.n, data.source.n_test) == (60_000, 10_000)
    assert np.bincount(data.labels).tolist() == counts
    assert data.labels[0] == first
    image = data.features(np.array([0]))
    assert (image.shape, image.dtype, int(image.max())) == ((1, 28, 28), np.uint8, 255)


def test_every_source_says_what_it_is_and_needs():
    for name in SOURCES.names():
        assert SOURCES.find(name).__doc__
        if name not in ("digits", "fcube"):
            with pytest.raises(ValueError, match=r"say where it lies with --data-root DIR"):
                niidpart.load(name)
