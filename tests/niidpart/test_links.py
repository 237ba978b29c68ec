"""A link that leads back to itself is told as one by every door, and is no bug."""

import pytest

import niidpart
from niidpart.auditing.auditing import audit
from niidpart.published import find_published


@pytest.fixture
def circle(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    return tmp_path / "a"


@pytest.mark.parametrize(
    "door",
    [
        niidpart.read,
        niidpart.cite,
        audit,
        find_published,
        niidpart.import_,
        lambda path: niidpart.import_(path, "csv", data=niidpart.load("digits")),
        lambda path: niidpart.load("npz", path),
        lambda path: niidpart.load("image-folder", path.parent),  # it lies inside
        lambda path: niidpart.write(niidpart.make([0, 1], "homo", n_parties=1), path),
        lambda path: niidpart.make([0, 1], f"{path}/own.py:deal", n_parties=1),
    ],
)
def test_a_circle_of_links_is_told(door, circle):
    with pytest.raises(niidpart.FileFault, match="is a link that leads back to itself"):
        door(circle)
