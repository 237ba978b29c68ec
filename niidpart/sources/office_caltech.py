"""Office-Caltech: ten kinds of things as four cameras and shops show them."""

from pathlib import Path

from ..data import Data, DataSource
from ..data.places import DataPlaces
from ..data.readers.domain_folders import AnySize, Channels, Checksum, Size, load_domains

_PUBLISHED = {"amazon": 958, "caltech": 1_123, "dslr": 157, "webcam": 295}
_DRIVE = "https://drive.google.com/uc?id=1gxhV5xRXQgC9AL4XexduH7hdxDng7bJ3"

PLACES = DataPlaces(
    title="Office-Caltech",
    folders=("", "office_caltech_10", "office_caltech_10/office_caltech_10", "office-caltech"),
    forms=(tuple(f"{domain}/" for domain in _PUBLISHED),),
    get=f"gdown -O {{root}}/office.zip '{_DRIVE}' && unzip -d {{root}} {{root}}/office.zip",
)


def office_caltech(
    root: str | Path,
    *,
    size: Size = None,
    channels: Channels = None,
    checksum: Checksum = True,
    any_size: AnySize = False,
) -> Data:
    """Office-Caltech: 2,533 images in four domains, uint8 [N, size, size, 3], 10 named classes.

    Gong, Shi, Sha and Grauman, CVPR 2012. Groups are the domains, by name. Images differ in size:
    `size` brings them to one. They are decoded when they are asked for, which needs Pillow. There
    is no test set.

    Parameters
    ----------
    root : path
        The folder with `amazon`, `caltech`, `dslr` and `webcam`, or one with `office_caltech_10`
        that holds them.
    size : int, optional
        Width and height that all images are brought to.
    channels : int, optional
        1 (grey) or 3 (colours); else as the first image has it.
    checksum : bool
        The bytes of the files are part of the data's identity; else their names and sizes.
    any_size : bool
        Take folders with other counts than the published ones.
    """
    return load_domains(
        "Office-Caltech",
        PLACES.require(root),
        list(_PUBLISHED.values()),
        size=size,
        channels=channels,
        checksum=checksum,
        any_size=any_size,
    )


ENTRY = DataSource(load=office_caltech, places=PLACES, paper="gong2012geodesic")
