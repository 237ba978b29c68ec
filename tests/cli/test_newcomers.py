"""What a newcomer types first, and the sentence that leads on from it."""

import numpy as np
import pytest


@pytest.fixture
def labels(tmp_path):
    np.save(tmp_path / "labels.npy", np.arange(1000) % 10)
    return tmp_path


@pytest.mark.parametrize("where", [[], ["--disk-from", "1"]])
@pytest.mark.parametrize(
    "asked",
    ["--strategy homo --noise 0.1", "--strategy noise", "--strategy homo --transform noise"],
)
def test_labels_alone_get_no_noise(where, asked, labels, niidpart):
    command = ["make", "--dataset", "labels.npy", *asked.split(), *where]
    done = niidpart(*command, cwd=labels)
    assert done.returncode == 2
    assert "noise changes features, and labels.npy is read as labels alone" in done.stderr
    assert not (labels / "split.h5").exists()


@pytest.mark.parametrize("where", [[], ["--disk-from", "1"]])
def test_labels_alone_are_not_told_to_get_a_test_part(where, labels, niidpart):
    made = niidpart("make", "--dataset", "labels.npy", "--strategy", "homo", *where, cwd=labels)
    for told in (made.stdout, niidpart("show", "split.h5", cwd=labels).stdout):
        assert "nothing can be trained on it" in told
        assert "training needs one" not in told
