"""`label-noise` and `human-noise`: which labels are wrong, and who sees them so."""

import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import niidpart
from niidpart.data.annotations import read_embeddings_file, read_noisy_labels

N, K = 20_000, 10
LABELS = np.arange(N) * 7 % K
ROWS = np.arange(N)


def see(split, party):
    return niidpart.relabel(split, LABELS, party, ROWS)


def make(strategy="homo", n_parties=4, seed=0, **options):
    return niidpart.make(
        *(LABELS, strategy), n_parties=n_parties, seed=seed, transforms=[("label-noise", options)]
    )


class TestLabelNoise:
    @pytest.mark.parametrize("flips", ["symmetric", "pair"])
    @pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
    def test_so_many_are_wrong_whatever_their_class(self, rate, flips):
        split = make(rate=rate, flips=flips)
        for party in range(4):
            is_wrong = see(split, party) != LABELS
            for k in range(K):
                n_wrong = int(is_wrong[k == LABELS].sum())
                law = stats.binom(N // K, rate)
                assert law.ppf(1e-5) <= n_wrong <= law.ppf(1 - 1e-5)

    def test_a_wrong_label_is_any_other_alike(self):
        split = make(rate=1.0)
        step = (see(split, 0) - LABELS) % K
        assert step.min() == 1
        assert stats.chisquare(np.bincount(step, minlength=K)[1:]).pvalue > 1e-4

    def test_pairs_go_to_the_next_class(self):
        seen = see(make(rate=0.4, flips="pair"), 1)
        is_wrong = seen != LABELS
        assert np.array_equal(seen[is_wrong], (LABELS[is_wrong] + 1) % K)

    def test_parties_are_wrong_on_their_own(self):
        split = make(rate=0.5)
        a, b = (see(split, party) != LABELS for party in (0, 1))
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(N)

    def test_rates_of_noisy_parties_are_uniform_between_the_two(self):
        rates = make(n_parties=2000, rate=0.9, least=0.3, affected=0.25).columns["label-noise_rate"]
        noisy = rates[rates > 0]
        assert len(noisy) == 500
        assert stats.kstest(noisy, stats.uniform(0.3, 0.6).cdf).pvalue > 1e-3

    def test_a_label_is_the_same_whatever_is_read_with_it(self):
        split = make(rate=0.5)
        whole = see(split, 2)
        for rows in (ROWS[::-1], np.array([7]), np.array([19_999, 0, 7], np.int32)):
            assert np.array_equal(niidpart.relabel(split, LABELS[rows], 2, rows), whole[rows])
        assert niidpart.relabel(split, LABELS[:0], 2, ROWS[:0]).shape == (0,)

    def test_a_split_without_it_leaves_labels_as_they_are(self):
        split = niidpart.make(LABELS, "homo", transforms=[("noise", {})])
        assert niidpart.relabel(split, LABELS, 0, ROWS) is LABELS

    def test_who_holds_what_the_counts_and_the_skew_are_by_the_true_labels(self):
        noisy, clean = make("dir", rate=0.9), niidpart.make(LABELS, "dir", n_parties=4)
        assert noisy.train.digest == clean.train.digest
        assert np.array_equal(noisy.train.counts, clean.train.counts)

    def test_two_of_them_follow_each_other(self):
        steps = [("label-noise", {"rate": 1.0, "flips": "pair"})] * 2
        split = niidpart.make(LABELS, "homo", n_parties=2, transforms=steps)
        assert np.array_equal(see(split, 0), (LABELS + 2) % K)

    def test_features_stay_as_they_are(self):
        x = np.zeros((3, 4, 4), np.uint8)
        assert niidpart.transform(make(rate=0.5), x, 0, ROWS[:3]) is x

    def test_one_class_has_no_other(self):
        split = niidpart.make(np.zeros(50, int), "label-noise", n_parties=2, rate=1.0)
        assert not niidpart.relabel(split, np.zeros(50, int), 0, np.arange(50)).any()

    def test_what_cannot_be_is_refused(self):
        with pytest.raises(niidpart.UsageError, match=r"least is 0\.5 and rate 0\.2"):
            make(rate=0.2, least=0.5)
        with pytest.raises(
            niidpart.UsageError, match=r"rate is 1\.5; it must be at least 0 and at most 1"
        ):
            make(rate=1.5)
        with pytest.raises(niidpart.UsageError, match="2 labels and 3 rows"):
            niidpart.relabel(make(rate=0.2), LABELS[:2], 0, ROWS[:3])

    def test_one_partys_examples_have_them_but_for_its_test_part(self):
        pytest.importorskip("datasets", reason="to_hf makes a data set of that library")
        data = niidpart.load("digits")
        steps = [("label-noise", {"rate": 1.0, "flips": "pair"})]
        split = niidpart.make(data, "homo", n_parties=3, val=0.2, test=0.2, transforms=steps)
        for part, by in (("train", 1), ("val", 1), ("test", 0)):
            found = niidpart.to_hf(split, 1, part=part, data=data)
            true = data.labels[split.parts[part].party(1)]
            assert np.array_equal(np.array(found["label"]), (true + by) % 10)


@pytest.fixture(scope="module")
def digits():
    return niidpart.load("digits")


@pytest.fixture(scope="module")
def people(digits):
    """Labels of people: every ninth is the next class."""
    labels = digits.labels.copy()
    labels[::9] = (labels[::9] + 1) % 10
    return labels


@pytest.fixture(scope="module")
def split(digits, people):
    return niidpart.make(
        digits, "human-noise", n_parties=4, affected=0.5, noisy_labels=people, seed=1
    )


class TestHumanNoise:
    def test_noisy_parties_see_what_people_said(self, split, digits, people):
        rows = np.arange(len(digits.labels))
        seen = [niidpart.relabel(split, digits.labels, party, rows) for party in range(4)]
        noisy = split.columns["human-noise_noisy"]
        assert noisy.sum() == 2
        for party in range(4):
            expected = people if noisy[party] else digits.labels
            assert np.array_equal(seen[party], expected)

    def test_the_file_alone_says_them(self, split, digits, people, tmp_path):
        path = niidpart.write(split, tmp_path / "human.h5")
        again = niidpart.read(path)
        party = int(again.columns["human-noise_noisy"].argmax())
        rows = again.train.party(party)
        seen = niidpart.relabel(again, digits.labels[rows], party, rows)
        assert np.array_equal(seen, people[rows])
        with niidpart.open(path) as opened:
            assert np.array_equal(niidpart.relabel(opened, digits.labels[rows], party, rows), seen)

    def test_verify_without_them_follows_the_stored_ones(self, split, digits, people, tmp_path):
        path = niidpart.write(split, tmp_path / "human.h5")
        alone = niidpart.verify(path)
        assert (alone.derived, alone.faults) == (False, [])
        assert "labels of people" in alone.why_not
        whole = niidpart.verify(path, data=replace(digits, noisy_labels=people))
        assert (whole.derived, whole.faults) == (True, [])
        other = niidpart.verify(path, data=replace(digits, noisy_labels=digits.labels))
        assert [fault.rule for fault in other.faults] == [64]

    def test_a_changed_label_in_the_file_is_a_fault(self, split, tmp_path):
        changed = split.draws["human-noise_changed"].copy()
        changed[3, 1] = (changed[3, 1] + 1) % 10
        forged = replace(split, draws={**split.draws, "human-noise_changed": changed})
        path = niidpart.write(forged, tmp_path / "forged.h5")
        verdict = niidpart.verify(path)
        assert [fault.rule for fault in verdict.faults] == [63]

    def test_stored_labels_that_are_no_whole_numbers_are_a_fault(self, split, tmp_path):
        changed = split.draws["human-noise_changed"].astype(np.float64)
        forged = replace(split, draws={**split.draws, "human-noise_changed": changed})
        path = niidpart.write(forged, tmp_path / "forged.h5")
        verdict = niidpart.verify(path)
        assert [fault.rule for fault in verdict.faults] == [63]

    def test_labels_that_no_class_has_are_a_damaged_file(self, split, digits):
        changed = np.array([[0, 99]])
        forged = replace(split, draws={"human-noise_changed": changed})
        party = int(split.columns["human-noise_noisy"].argmax())
        with pytest.raises(niidpart.FileFault, match=r"are 99\.\.99, and there are 10 classes"):
            niidpart.relabel(forged, digits.labels[:1], party, np.array([0]))

    def test_people_who_agree_with_the_data_change_nothing(self, digits, tmp_path):
        split = niidpart.make(digits, "human-noise", n_parties=3, noisy_labels=digits.labels)
        path = niidpart.write(split, tmp_path / "agree.h5")
        again = niidpart.read(path)
        rows = again.train.party(1)
        seen = niidpart.relabel(again, digits.labels[rows], 1, rows)
        assert np.array_equal(seen, digits.labels[rows])
        assert niidpart.verify(path, data=replace(digits, noisy_labels=digits.labels)).derived

    @pytest.mark.parametrize(
        ("noisy", "said"),
        [
            (None, "human-noise needs the labels that people gave"),
            (np.zeros(5, int), r"noisy_labels are int64\[5\]; \[N\], 1437 whole numbers"),
            (np.full(1437, 10), r"noisy_labels are 10\.\.10"),
        ],
    )
    def test_labels_of_other_data_are_refused(self, digits, noisy, said):
        with pytest.raises(niidpart.UsageError, match=said):
            niidpart.make(digits, "human-noise", noisy_labels=noisy)

    def test_pooled_test_rows_keep_their_labels(self, digits, people):
        pooled = niidpart.data.pool_test_set(replace(digits, noisy_labels=people))
        assert np.array_equal(pooled.noisy_labels[:1437], people)
        assert np.array_equal(pooled.noisy_labels[1437:], digits.test_labels)


def write_as_torch(path, held, protocol=2):
    """As torch.save writes a dict of arrays: a zip that is not packed, with the pickle in a folder."""
    import pickle

    program = io.BytesIO()
    pickle.dump(held, program, protocol=protocol)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", program.getvalue())
        archive.writestr("archive/version", "3\n")


class TestFilesOfPeople:
    """The layout of CIFAR-N: CIFAR-10_human.pt is a dict of arrays that torch wrote."""

    @pytest.fixture
    def files(self, tmp_path, digits, people):
        held = {"clean_label": digits.labels, "worse_label": people, "aggre_label": digits.labels}
        write_as_torch(tmp_path / "human.pt", held)
        np.savez(tmp_path / "human.npz", **held)
        np.savez(tmp_path / "one.npz", clean_label=digits.labels, label=people)
        np.save(tmp_path / "human.npy", people)
        return tmp_path

    @pytest.mark.parametrize(
        ("file", "name"),
        [
            ("human.pt", "worse_label"),
            ("human.npz", "worse_label"),
            ("one.npz", ""),
            ("human.npy", ""),
        ],
    )
    def test_labels_are_read(self, files, digits, people, file, name):
        data = read_noisy_labels(digits, files / file, name)
        assert np.array_equal(data.noisy_labels, people)

    @pytest.mark.parametrize("file", ["human.pt", "human.npz"])
    def test_a_file_of_other_data_is_told_by_its_true_labels(self, files, file):
        other = niidpart.from_arrays(None, np.arange(1437) % 10)
        with pytest.raises(
            niidpart.UsageError, match="of other data, or of the same in another order"
        ):
            read_noisy_labels(other, files / file, "worse_label")

    @pytest.mark.parametrize(
        ("file", "name", "said"),
        [
            ("human.pt", "", r"holds several arrays; write human\.pt:NAME with one of aggre_label"),
            ("human.npz", "worst", r"has no array 'worst'; .* aggre_label, worse_label"),
            ("human.npy", "worse", "holds one array without a name; leave out :worse"),
            ("human.csv", "", r"ends in \.csv"),
        ],
    )
    def test_a_name_that_is_not_there_is_answered_with_those_that_are(
        self, files, digits, file, name, said
    ):
        (files / "human.csv").write_text("1\n")
        with pytest.raises(niidpart.UsageError, match=said):
            read_noisy_labels(digits, files / file, name)

    def test_nothing_in_it_is_run(self, tmp_path, digits):
        class Harm:
            def __reduce__(self):
                return (open, (str(tmp_path / "harm"), "w"))

        write_as_torch(tmp_path / "bad.pt", {"worse_label": Harm()})
        with pytest.raises(niidpart.FileFault, match=r"bad\.pt"):
            read_noisy_labels(digits, tmp_path / "bad.pt", "worse_label")
        assert not (tmp_path / "harm").exists()

    @pytest.mark.parametrize("file", ["no.pt", "no.npz", "no.npy"])
    def test_damage_is_said(self, tmp_path, digits, file):
        (tmp_path / file).write_bytes(b"PK\x03\x04 nothing")
        with pytest.raises(niidpart.FileFault, match=file):
            read_noisy_labels(digits, tmp_path / file)
        with pytest.raises(FileNotFoundError, match="there is no file"):
            read_noisy_labels(digits, tmp_path / f"missing-{file}")

    @pytest.mark.parametrize(
        "value",
        [["x" * 5000] + ["a"] * 5000, [[1, 2], [3]], "x" * 50],
        ids=["a table of texts", "ragged", "a text"],
    )
    def test_what_is_no_array_becomes_none(self, tmp_path, digits, value):
        """As an array of texts, each would take as much as the longest: 100 MB of 10 kB here."""
        write_as_torch(tmp_path / "texts.pt", {"worse_label": value})
        with pytest.raises(niidpart.UsageError, match="has no array 'worse_label'"):
            read_noisy_labels(digits, tmp_path / "texts.pt", "worse_label")

    @pytest.mark.parametrize("shape", [(10**8,), (1437, 10**14), (1437, 10**20), (1437, -1)])
    def test_a_header_that_says_more_than_the_file_holds_takes_no_memory(
        self, tmp_path, digits, shape
    ):
        with (tmp_path / "rows.npy").open("wb") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            file.write(b"\0" * 800)
        with pytest.raises(niidpart.FileFault, match=r"rows\.npy is no \.npy of numbers"):
            read_embeddings_file(digits, tmp_path / "rows.npy")

    def test_embeddings_are_read(self, tmp_path, digits):
        rows = np.arange(1437 * 3, dtype=np.float32).reshape(1437, 3)
        np.save(tmp_path / "rows.npy", rows)
        np.savez(tmp_path / "rows.npz", a=rows, b=rows[:, :2])
        assert read_embeddings_file(digits, tmp_path / "rows.npy").embeddings.shape == (1437, 3)
        assert read_embeddings_file(digits, tmp_path / "rows.npz", "b").embeddings.shape == (
            1437,
            2,
        )
        with pytest.raises(niidpart.UsageError, match="several arrays"):
            read_embeddings_file(replace(digits), tmp_path / "rows.npz")


def test_exports_that_hold_labels_hold_those_that_parties_see(digits, tmp_path):
    """flower writes parquet with labels: noisy ones in train, true ones in test; it comes in again."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="flower's layout is parquet")
    split = niidpart.make(
        *(digits, "dir"),
        n_parties=3,
        test=0.2,
        transforms=[("label-noise", {"rate": 1.0, "flips": "pair"})],
    )
    folder = niidpart.export(split, digits, "flower", tmp_path / "flower")
    for part, step in (("train", 1), ("test", 0)):
        for path in folder.rglob(f"{part}*.parquet"):
            table = parquet.read_table(path)
            rows, labels = table["row"].to_numpy(), table["label"].to_numpy()
            assert np.array_equal(labels, (digits.labels[rows] + step) % 10)
    with pytest.warns(UserWarning, match="comes in as `imported`"):  # it keeps no columns
        again = niidpart.import_(folder, "flower", data=digits)
    assert again.train.digest == split.train.digest
