"""Draws the pictures of docs/strategies.md, of data that comes with the package: python docs/pictures_strategies.py [FOLDER]."""

import sys
from pathlib import Path

import numpy as np
from pictures import shrink

import niidpart
from niidpart import plot
from niidpart.strategies import STRATEGIES
from niidpart.transforms import TRANSFORMS

# Options that show more than the defaults do, and strategies that need groups: those of the cube are its octants.
OPTIONS = {
    "party-dir": {"spread": 0.8},
    "labels": {"k": 2},
    "extended-dir": {"k": 4},
    "lognormal": {"sigma": 1.0},
    "power-law": {"exponent": 1.0},
    "exponential": {"ratio": 30.0},
    "label-quantity": {"beta": 0.3, "size_beta": 1.0},
    "semantic": {"beta": 0.2},
    "human-noise": {"affected": 0.5},
    "label-noise": {"rate": 0.5},
    "noise": {"sigma": 0.5},
    "noise-space": {"sigma": 0.5},
    "shards": {"shards": 2},
    "group": {"n_parties": 8},
    "niidbench": {"rule": "dir", "beta": 0.5},
}
OF_CUBE = ("fcube", "group")


def colour_digits(digits: niidpart.Data) -> niidpart.Data:
    """The digits in three channels, in which a tint shows."""
    grey = digits.features(slice(None))
    return niidpart.from_arrays(np.repeat(grey[..., None], 3, axis=3), digits.labels)


def main(folder: Path) -> None:
    digits, cube = niidpart.load("digits"), niidpart.load("fcube")
    # Of the replays one is drawn: each deals as a strategy that has a picture.
    replays = {
        name for name in STRATEGIES.names() if "rule" in STRATEGIES.options(STRATEGIES.find(name))
    }
    for name in sorted({*STRATEGIES.names()} - replays | {"niidbench"}):
        data = cube if name in OF_CUBE else digits
        split = niidpart.make(data, name, **OPTIONS.get(name, {}))
        plot.save(split, folder / f"{name}.png", medium="column")
    people = (digits.labels + (np.arange(len(digits.labels)) % 3 == 0)) % 10
    for name in TRANSFORMS.names():
        data = colour_digits(digits) if name == "colour" else digits
        split = niidpart.make(data, name, noisy_labels=people, **OPTIONS.get(name, {}))
        if name == "new-parties":
            plot.save(split, folder / f"{name}.png", "bubbles", medium="column")
            continue
        how = {"data": data, "medium": "column", "parties": "0,3,6,9"}
        plot.save(split, folder / f"{name}.png", "noise", **how)
    for picture in folder.glob("*.png"):
        shrink(picture)


if __name__ == "__main__":
    main(
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else Path(__file__).parent / "pictures" / "strategies"
    )
