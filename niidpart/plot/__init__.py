"""Pictures of a split: one kind a file; the folder is the registry. A picture is `(split, ax) -> ax`: it draws, and neither computes nor saves."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..registry import Registry
from ..split import FederatedSplit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = Registry("niidpart.plot", "picture", given=frozenset({"split", "ax"}))


def draw(split: FederatedSplit, kind: str = "heatmap") -> "Figure":
    """The picture as a matplotlib Figure, the recipe above it and the digest in the corner. ModuleNotFoundError without matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    PICTURES.find(kind)(split, figure.add_subplot())
    figure.suptitle(title(split), fontsize=11)
    figure.text(0.995, 0.005, f"digest {split.digest[:16]}", ha="right", va="bottom", fontsize=6, color="0.45", family="monospace")
    return figure


def save(split: FederatedSplit, path: str | Path, kind: str = "heatmap") -> Path:
    """Draws into a file; its ending says which format (png, svg, pdf)."""
    path = picture_path(path)
    draw(split, kind).savefig(path)
    return path


def picture_path(path: str | Path) -> Path:
    """The path of a picture, its folder made; ValueError where its ending is no format of pictures."""
    path = Path(path)
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{path} does not say which format; end it in .png, .svg or .pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def title(split: FederatedSplit) -> str:
    """What was asked for, in a line: `digits, dir (beta 0.5), noise (sigma 0.1), 10 parties, seed 0`."""
    recipe = split.recipe
    steps = [(recipe.strategy, recipe.params), *((t.name, t.params) for t in recipe.transforms)]
    return ", ".join([split.source.name, *(_step(name, p) for name, p in steps), f"{split.n_parties} parties", f"seed {recipe.seed}"])


def _step(name: str, params: dict[str, Any]) -> str:
    shown = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in params.items() if k != "min_size" and v is not False)
    return f"{name} ({shown})" if shown else name
