"""Splits that lack some parties of another, and a short training of what parties are measured by."""

from dataclasses import replace

import numpy as np

import niidpart
from niidpart.splits.part_making import make_part

# Two quick rounds in which parties come apart.
HOW = {
    "model": "mlp",
    "rounds": 2,
    "local_epochs": 1,
    "batch_size": 8,
    "lr": 0.1,
    "momentum": 0.5,
    "threads": 1,
}


def without(split, data, left_out):
    """The split of the parties that are left, numbered anew in their order."""
    kept = [p for p in range(split.n_parties) if p not in left_out]
    fewer = niidpart.make(data, "homo", n_parties=len(kept))
    parts = {}
    for name, part in split.parts.items():
        owner = np.full(len(data.labels), -1)
        for new, old in enumerate(kept):
            owner[part.party(old)] = new
        parts[name] = make_part(owner, data.labels, len(kept), len(data.class_names))
    return replace(fewer, **parts)
