"""Writes the corpus: one bad file for each attack. `python -m corpus.build FOLDER` beside this folder."""

import sys
from pathlib import Path

import h5py
import numpy as np

from . import manifests, meaning, structure, values  # noqa: F401  each registers its attacks
from .registry import ATTACKS, Attack, good_files


def build(folder: Path) -> dict[str, Path]:
    """{attack: its file}. What the files point at lies in `canary`: nobody may open it."""
    good = good_files(folder / "good")
    (folder / "bad" / "canary").mkdir(parents=True)
    with h5py.File(folder / "bad" / structure.SECRET, "w") as f:
        f["manifest"] = f["train/indices"] = np.zeros(4, "u1")
    paths = {name: folder / "bad" / f"{name}.h5" for name in ATTACKS}
    for name, attack in ATTACKS.items():
        attack.make(good, paths[name])
    return paths


__all__ = ["ATTACKS", "Attack", "build"]

if __name__ == "__main__":
    print(f"{len(build(Path(sys.argv[1])))} files in {sys.argv[1]}/bad")
