"""A long tail before the split: which examples stay, and that strategies see no others."""

import numpy as np
import pytest

import niidpart
from niidpart.data import make_long_tail

# What the code of Cao et al. keeps of CIFAR-10 at an imbalance factor of 100, and of 50.
PUBLISHED = {
    100: [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50],
    50: [5000, 3237, 2096, 1357, 878, 568, 368, 238, 154, 100],
}


@pytest.mark.parametrize("factor", PUBLISHED)
def test_classes_have_the_published_sizes(factor):
    data = niidpart.from_arrays(None, np.arange(50_000) % 10)
    assert np.bincount(make_long_tail(data, factor).labels).tolist() == PUBLISHED[factor]


def test_examples_keep_their_features_and_the_test_set_is_whole():
    whole, tailed = niidpart.load("digits"), niidpart.load("digits", long_tail=20)
    images = {
        x.tobytes(): k for x, k in zip(whole.features(slice(None)), whole.labels, strict=True)
    }
    seen = tailed.features(slice(None))
    assert len(seen) == len(tailed.labels) < len(whole.labels)
    assert [images[x.tobytes()] for x in seen] == tailed.labels.tolist()
    assert np.array_equal(tailed.features(np.array([5, 2])), seen[[5, 2]])
    assert np.array_equal(tailed.test_labels, whole.test_labels)
    with pytest.raises(IndexError, match=r"rows -1\.\.-1 were asked for"):
        tailed.features(np.array([-1]))


def test_a_split_of_it_is_of_that_data_and_is_derived_again(tmp_path):
    tailed = niidpart.load("digits", long_tail=10)
    split = niidpart.make(tailed, "dir", n_parties=5)
    path = niidpart.write(split, tmp_path / "tail.h5")
    assert split.source.params["long_tail"] == 10.0
    assert [work.role for work in niidpart.cite(split).works][:2] == ["data set", "long tail"]
    assert split.n_unheld == 0
    verdict = niidpart.verify(path)
    assert verdict.derived
    assert not verdict.faults
    assert niidpart.open_data(split).source.labels_sha256 == split.source.labels_sha256


def test_a_data_set_without_a_tail_has_the_digest_that_it_had():
    assert "long_tail" not in niidpart.load("digits").source.params
    assert (
        niidpart.load("digits", long_tail=1).labels.tolist()
        == niidpart.load("digits").labels.tolist()
    )


def test_groups_and_what_is_handed_over_go_along():
    labels = np.arange(100) % 4
    data = niidpart.Data(
        *(labels, ["a", "b", "c", "d"]),
        groups=np.arange(100),
        noisy_labels=(labels + 1) % 4,
        embeddings=np.arange(200).reshape(100, 2),
    )
    tailed = make_long_tail(data, 5)
    assert np.array_equal(tailed.labels, labels[tailed.groups])
    assert np.array_equal(tailed.noisy_labels, (tailed.labels + 1) % 4)
    assert np.array_equal(tailed.embeddings[:, 0], 2 * tailed.groups)


def test_every_class_keeps_one():
    tailed = make_long_tail(niidpart.from_arrays(None, np.arange(30) % 3), 1e9)
    assert np.bincount(tailed.labels).tolist() == [10, 1, 1]


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (0.5, "long_tail is 0.5; it must be at least 1"),
        ("x", "long_tail"),
        (float("nan"), "long_tail"),
    ],
)
def test_what_is_no_factor_is_refused(factor, said):
    with pytest.raises(niidpart.UsageError, match=said):
        niidpart.load("digits", long_tail=factor)


def test_one_class_has_no_tail():
    with pytest.raises(niidpart.UsageError, match="at least 2 classes"):
        make_long_tail(niidpart.from_arrays(None, np.zeros(9, int)), 10)
