"""Draws the pictures of docs/strategies.md, of data that comes with the package: python docs/pictures_strategies.py [FOLDER]."""

import sys
from pathlib import Path

from pictures import shrink

import niidpart
from niidpart import plot

OF_DIGITS = {
    "homo": {},
    "dir": {"beta": 0.5},
    "dir-balanced": {"beta": 0.5},
    "party-dir": {"beta": 0.5, "spread": 0.8},
    "labels": {"k": 2},
    "shards": {"shards": 2},
    "quantity": {"beta": 0.5},
    "hierarchical": {},
    "hypergeometric": {},
    "niidbench": {"rule": "dir", "beta": 0.5},
}
OF_CUBE = {"fcube": {}, "group": {"n_parties": 8}}  # whose groups are the octants
TRANSFORMS = {"noise": {"sigma": 0.5}, "noise-space": {"sigma": 0.5}}


def main(folder: Path) -> None:
    digits, cube = niidpart.load("digits"), niidpart.load("fcube")
    for data, asked in ((digits, OF_DIGITS), (cube, OF_CUBE)):
        for name, options in asked.items():
            plot.save(niidpart.make(data, name, **options), folder / f"{name}.png", medium="column")
    for name, options in TRANSFORMS.items():
        plot.save(
            niidpart.make(digits, name, **options),
            folder / f"{name}.png",
            "noise",
            data=digits,
            medium="column",
            parties="0,3,6,9",
        )
    for picture in folder.glob("*.png"):
        shrink(picture)


if __name__ == "__main__":
    main(
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else Path(__file__).parent / "pictures" / "strategies"
    )
