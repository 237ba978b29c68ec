"""`fltrain.party`: one party as a torch data set."""

import numpy as np
import pytest
import torch

import fltrain
import niidpart
from fltrain.inputs.gathering import load_federated


@pytest.fixture(scope="module")
def colour():
    rng = np.random.default_rng(0)
    return niidpart.from_arrays(
        rng.integers(0, 256, (120, 6, 5, 3), dtype=np.uint8), np.arange(120) % 4
    )


@pytest.mark.parametrize("transforms", [(), [("noise", {"sigma": 0.3})]], ids=["plain", "noise"])
@pytest.mark.parametrize("part", ["train", "test"])
def test_it_is_what_training_gives_the_model(part, transforms, colour, tmp_path):
    split = niidpart.make(colour, "dir", n_parties=5, test=0.2, min_size=3, transforms=transforms)
    whole = getattr(load_federated(split, colour, torch.device("cpu")), part)
    path = niidpart.write(split, tmp_path / "split.h5")
    with niidpart.open(path) as opened:
        for p in range(5):
            at = slice(whole.indptr[p], whole.indptr[p + 1])
            for source in (split, opened, path, str(path)):
                x, y = fltrain.party(source, p, part=part, data=colour).tensors
                assert torch.equal(x, whole.inputs(at))
                assert torch.equal(y, whole.y[at])


def test_it_loads_like_any_torch_data_set_and_finds_its_data(tmp_path):
    split = niidpart.make(niidpart.load("digits"), "dir", n_parties=8)
    path = niidpart.write(split, tmp_path / "split.h5")
    batches = list(torch.utils.data.DataLoader(fltrain.party(path, 3), batch_size=16))
    assert sum(len(y) for _, y in batches) == split.train.sizes[3]
    assert batches[0][0].shape[1:] == (1, 8, 8)
    assert callable(fltrain.party)  # not hidden by a file of that name


def test_what_is_not_there_is_said(colour):
    split = niidpart.make(colour, "homo", n_parties=4, transforms=[("noise", {"fresh": True})])
    with pytest.raises(ValueError, match="does not say where the data is"):
        fltrain.party(split, 0)
    with pytest.raises(ValueError, match="lossy=True"):
        fltrain.party(split, 0, data=colour)
    with pytest.raises(IndexError, match=r"0\.\.3"):
        fltrain.party(split, 4, data=colour, lossy=True)
    assert len(fltrain.party(split, 0, part="val", data=colour, lossy=True)) == 0


@pytest.mark.parametrize("p", ["a", True, 1.5, None])
def test_a_party_is_a_whole_number(p, colour):
    with pytest.raises(ValueError, match=r"party is .*it must be a whole number"):
        fltrain.party(niidpart.make(colour, "homo", n_parties=5), p, data=colour)
