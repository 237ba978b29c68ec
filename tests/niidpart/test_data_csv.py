"""CSV is read in blocks: columns that change their kind on the way, long rows, numbers that are infinite."""

import contextlib
import gc
import weakref

import numpy as np
import pytest

import niidpart
from niidpart.errors import UsageError

pa = pytest.importorskip("pyarrow", reason="pyarrow, which reads tables, is not installed")

from niidpart.data.of_tables import load_rows  # noqa: E402
from niidpart.data.readers import csv_column  # noqa: E402
from niidpart.data.readers.arrow_table import ColumnChoice  # noqa: E402
from niidpart.data.readers.csv_text import read_csv  # noqa: E402
from niidpart.data.readers.memory_table import MemoryTable  # noqa: E402
from niidpart.data.treatment.treated import TableRows  # noqa: E402


def read_in_blocks(texts, length, missing=()):
    column = csv_column.make_column("x", False, missing)
    for start in range(0, len(texts), length):
        column.add(pa.array(texts[start : start + length], pa.string()), "")
    return column.finish()


@pytest.mark.parametrize("length", [1, 3, 7, 500])
@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", " 2.5", "", "nan", "-0.0"] * 40, [1.0, 2.5, None, None, -0.0] * 40),
        (["1", "2"] * 50 + ["true"], ["1", "2"] * 50 + ["true"]),
        ([""] * 9 + ["True", "false"] * 9, [None] * 9 + [True, False] * 9),
        ([""] * 20, [None] * 20),
        (["7"] * 99 + ["red", ""], ["7"] * 99 + ["red", None]),
        (["TRUE"] * 9 + ["red", "true"], ["TRUE"] * 9 + ["red", "true"]),
    ],
    ids=[
        *("numbers", "numbers, then true", "gaps, then truths", "gaps", "numbers, then text"),
        "truths, then text",
    ],
)
def test_a_column_is_the_same_however_it_comes_in_blocks(texts, values, length, monkeypatch):
    monkeypatch.setattr(csv_column, "_PIECE", 16)  # so that there are several
    column = read_in_blocks(texts, length)
    assert column.to_pylist() == values
    if isinstance(values[0], float):
        assert column.num_chunks == 1
        assert np.signbit(column.to_pylist()[4])


def test_a_number_that_stands_for_a_missing_value_is_one_among_plain_numbers_too():
    assert read_in_blocks(["1", "-999", "3"], 3, ["-999"]).to_pylist() == [1.0, None, 3.0]
    assert read_in_blocks(["1", "-999", "3"], 3, ["?"]).to_pylist() == [1.0, -999.0, 3.0]


@pytest.mark.parametrize("million", [2, 3])
def test_a_row_longer_than_a_block_is_read(million, tmp_path):
    text = "a" * (million * 1_000_000)
    rows = [f"{i},{text if i == 30 else 'short'},{i % 2}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,note,label", *rows]))
    data = niidpart.load(tmp_path / "t.csv", drop="note")
    assert data.features(slice(None)).ravel().tolist() == list(range(60))


@pytest.mark.parametrize("last", ["1,2", "1,2,3"])
def test_no_thread_holds_the_file_when_it_has_been_read(last, tmp_path, monkeypatch):
    """A thread that let go of it while the interpreter ends would abort the process."""
    lent = []

    def note(self, file):
        lent.append(weakref.ref(self))
        self._file = file

    monkeypatch.setattr("niidpart.data.readers.loan._LentFile.__init__", note)
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["a,b", *["1,2"] * 50, last]))
    for _ in range(100):
        with contextlib.suppress(niidpart.errors.FileFault):
            read_csv([path], ["a", "b"], columns=["a", "b"], words=(), missing=())
        assert lent.pop()() is None


def test_rows_are_taken_a_few_megabytes_at_a_time():
    table = MemoryTable(pa.table({name: np.zeros(200_000) for name in "abcdefghij"}))
    rows = np.arange(table.n)[::-1]
    batches = list(table.batches(rows, ["a", "b", "c", "d"]))
    assert max(batch.nbytes for _, batch in batches) < 10 << 20
    assert np.array_equal(np.concatenate([places for places, _ in batches]), np.arange(table.n))


def test_treated_features_keep_no_table():
    table = MemoryTable(pa.table({"age": [1.0, None, 3.0], "label": [0, 1, 0]}))
    alive = weakref.ref(table)
    choice = ColumnChoice("label", columns={"age": "median"})
    data = load_rows(TableRows.of_all(table), None, choice, None, lambda has_test: "")
    del table
    gc.collect()
    assert alive() is None
    assert data.features(slice(None)).ravel().tolist() == [1, 2, 3]


def write_table(path, infinite):
    """Rows of which those named hold `inf` in the column rate."""
    rows = [f"{i},{'-inf' if i in infinite else i / 2},{'ab'[i % 2]},{i % 2}" for i in range(30)]
    path.write_text("\n".join(["x,rate,kind,label", *rows]))
    return path


@pytest.mark.parametrize("declared", [{}, {"rate": "most-frequent"}, {"rate": "median"}])
def test_infinite_numbers_are_refused_by_column_and_row(declared, tmp_path):
    path = write_table(tmp_path / "t.csv", infinite=(7, 9))
    columns = {"kind": "one-hot"} | declared
    said = r"the column 'rate' holds -inf in row 7 \(of 0, 1, ...\), the first of 2 infinite"
    with pytest.raises(UsageError, match=said):
        niidpart.load(path, columns=columns)
    with pytest.raises(UsageError, match=said):
        niidpart.load(path, drop="kind").features(np.array([1, 7, 9]))
    gaps = niidpart.load(path, columns=columns | {"rate": "median"}, missing="-inf")
    assert np.isfinite(gaps.features(slice(None))).all()


@pytest.mark.parametrize("columns", [None, {"kind": "one-hot"}])
def test_an_infinite_number_of_the_test_set_is_named_by_its_own_file(columns, tmp_path):
    path = write_table(tmp_path / "train.csv", infinite=())
    write_table(tmp_path / "test.csv", infinite=(4,))
    drop = None if columns else "kind"

    def read():
        data = niidpart.load(path, columns=columns, drop=drop, test_file="test.csv")
        return data.test_features(slice(None))

    with pytest.raises(UsageError, match=r"-inf in row 4 \(of 0, 1, ...\) of .*test\.csv; a"):
        read()


def test_look_says_which_columns_are_infinite(tmp_path):
    looked = niidpart.look(str(write_table(tmp_path / "t.csv", infinite=(7, 9))))
    assert looked.remarks[-1].startswith("'rate': 2 infinite numbers")
