"""Draws the pictures of docs/pictures.md, of data that comes with the package: python docs/pictures.py [FOLDER]."""

import sys
from pathlib import Path

import niidpart
from niidpart import plot


def of_counts(folder: Path) -> None:
    """Kinds that need no features."""
    digits = niidpart.load("digits")
    dirichlet = niidpart.make(digits, "dir", beta=0.5)
    for kind in ("heatmap", "bubbles", "bars", "simplex", "map-beta"):
        plot.save(dirichlet, folder / f"{kind}.png", kind, medium="column")
    plot.save(
        niidpart.make(digits, "quantity", beta=0.5), folder / "sizes.png", "sizes", medium="column"
    )
    plot.save(
        niidpart.make(digits, "hypergeometric"),
        folder / "archetypes.png",
        "archetypes",
        medium="column",
    )


def of_features(folder: Path) -> None:
    """Kinds that look at the data."""
    digits, cube = niidpart.load("digits"), niidpart.load("fcube")
    noisy = niidpart.make(digits, "homo", transforms=[("noise", {"sigma": 0.5})])
    plot.save(noisy, folder / "noise.png", "noise", data=digits, medium="column")
    of_cube = niidpart.make(cube, "fcube")
    plot.save(of_cube, folder / "fcube.png", "fcube", data=cube, medium="column", sample=400)
    plot.save(of_cube, folder / "features.png", "features", data=cube, medium="column", sample=400)


def shrink(path: Path) -> None:
    """64 colours are enough for a page of small pictures, and a third of the bytes."""
    from PIL import Image

    with Image.open(path) as image:
        few = image.convert("RGB").quantize(64)
    few.save(path, optimize=True)


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix("")
    of_counts(where)
    of_features(where)
    for picture in where.glob("*.png"):
        shrink(picture)
