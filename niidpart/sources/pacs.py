"""PACS: photos, art, cartoons and sketches of seven kinds of things."""

from pathlib import Path

from ..data import Data, DataSource
from ..data.places import DataPlaces
from ..data.readers.domain_folders import AnySize, Channels, Checksum, Size, load_domains

_PUBLISHED = {"art_painting": 2_048, "cartoon": 2_344, "photo": 1_670, "sketch": 3_929}
_DRIVE = "https://drive.google.com/uc?id=1JFr8f805nMUelQWWmfnJR3y4_SYoN5Pd"

PLACES = DataPlaces(
    title="PACS",
    folders=("", "PACS", "PACS/kfold", "kfold", "pacs"),
    forms=(tuple(f"{domain}/" for domain in _PUBLISHED),),
    get=f"gdown -O {{root}}/PACS.zip '{_DRIVE}' && unzip -d {{root}} {{root}}/PACS.zip",
)


def pacs(
    root: str | Path,
    *,
    size: Size = None,
    channels: Channels = None,
    checksum: Checksum = True,
    any_size: AnySize = False,
) -> Data:
    """PACS: 9,991 images of 227 x 227 in four domains, uint8 [N, 227, 227, 3], 7 named classes.

    Li, Yang, Song and Hospedales, ICCV 2017. Groups are the domains, by name. Images are decoded
    when they are asked for, which needs Pillow. There is no test set.

    Parameters
    ----------
    root : path
        The folder with `art_painting`, `cartoon`, `photo` and `sketch`, or one with `PACS` or
        `kfold` that holds them.
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
        "PACS",
        PLACES.require(root),
        list(_PUBLISHED.values()),
        size=size,
        channels=channels,
        checksum=checksum,
        any_size=any_size,
    )


ENTRY = DataSource(load=pacs, places=PLACES, paper="li2017pacs")
