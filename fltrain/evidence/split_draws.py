"""Which split files of runs are draws of one recipe: equal in all but the seed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import niidpart

from ..runs.folder import RunFolder
from ..runs.trials import SPLIT_SEED

_Config = Mapping[str, Any]  # of a run


class SplitDraw(NamedTuple):
    """A split file among others of its recipe. first: the digest of the first one of them."""

    first: str
    seed: int


def pool_draws(
    folders: Mapping[str, RunFolder], configs: Mapping[str, _Config]
) -> dict[str, dict[str, Any]]:
    """Return the configurations of runs, those on draws of one recipe as on one split.

    Their seeds of the split stand among the settings, as other seeds do.
    """
    draws = _find_draws(folders, configs)
    pooled = {}
    for name, config in configs.items():
        draw = draws.get(config["split"])
        pooled[name] = dict(config)
        if draw is not None:
            settings = dict(config["settings"])
            settings[SPLIT_SEED] = draw.seed
            pooled[name] |= {"split": draw.first, "settings": settings}
    return pooled


def describe_pooling(configs: Mapping[str, _Config], pooled: Mapping[str, _Config]) -> list[str]:
    """Return a line for each recipe of which there are several draws."""
    members: dict[str, dict[str, int]] = {}
    for name, config in pooled.items():
        seed = config["settings"].get(SPLIT_SEED)
        if seed is not None:
            file = configs[name]["split"]
            seeds = members.setdefault(config["split"], {})
            seeds[file] = seed
    lines = []
    for first, seeds in members.items():
        ordered = sorted(seeds.values())
        told = ", ".join(map(str, ordered))
        lines.append(
            f"split {first[:12]}: {len(seeds)} files differ in their seed alone ({told}), "
            "and are draws of one split"
        )
    return lines


def _find_draws(
    folders: Mapping[str, RunFolder], configs: Mapping[str, _Config]
) -> dict[str, SplitDraw]:
    """Return the draws by digest; of a recipe that has one alone, none."""
    files: dict[str, Path] = {}
    for name, config in configs.items():
        files.setdefault(config["split"], folders[name].split_file)
    if len(files) < 2:
        return {}
    draws: dict[str, SplitDraw] = {}
    for seeds in _group_by_recipe(files).values():
        distinct = set(seeds.values())
        # Splits of one recipe with one seed are none: something else made them differ.
        if len(seeds) < 2 or len(distinct) < len(seeds):
            continue
        first, *_ = seeds
        for digest, seed in seeds.items():
            draws[digest] = SplitDraw(first, seed)
    return draws


def _group_by_recipe(files: Mapping[str, Path]) -> dict[str, dict[str, int]]:
    """Return the seeds of splits by recipe and by digest, of files that are there."""
    families: dict[str, dict[str, int]] = {}
    for digest, file in files.items():
        if not file.exists():
            continue
        recipe, seed = _read_recipe(file)
        seeds = families.setdefault(recipe, {})
        seeds[digest] = seed
    return families


def _read_recipe(file: Path) -> tuple[str, int]:
    """Return what a split was asked for but for its seed, and the seed."""
    with niidpart.open(file) as split:
        recipe = split.recipe.to_json()
        seed: int = recipe.pop("seed")
        asked = [recipe, split.source.to_json()]
    return json.dumps(asked, sort_keys=True, default=str), seed
