"""Pictures of a split: one kind a file; the folder is the registry.

A picture is `(split, figure, parties, *, options) -> caption`: it draws into an empty matplotlib Figure, may set its height, and says in words
what is shown. It neither loads nor saves. parties: those that were asked for, or None: it chooses, and says so. One that shows features has
`data` as fourth parameter.
"""

from collections.abc import Sequence
from inspect import signature
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from ..arithmetic.rng import Ints
from ..data import Data
from ..data.of_split import source_faults
from ..errors import UsageError
from ..files import write_whole
from ..registry import Registry
from ..splits.split import FederatedSplit
from ._look import (
    MEDIA,
    Figure,
    Medium,
    format_count,
    make_printable,
    smallest_font,
    use_look,
    wrap_text,
)
from ._parties import parse_parties

PICTURES = Registry(
    "niidpart.plot", "picture", given=frozenset({"split", "figure", "parties", "data"})
)
_OWN_FILES = (
    "npz",
    "csv",
    "parquet",
    "libsvm",
    "image-folder",
)  # sources whose root says more than their name
Parties = str | Sequence[int] | Ints | None


def draw(
    split: FederatedSplit,
    kind: str = "heatmap",
    *,
    data: Data | None = None,
    parties: Parties = None,
    medium: Literal["screen", "print", "column"] = "screen",
    **options: Any,
) -> Figure:
    """The picture as a matplotlib Figure: the recipe and what is shown above it, the digest in the corner.

    kind: a file of `niidpart/plot`, or `file.py:function`; `options` are its own. data: what `niidpart.load` gives; needed by kinds that show
    features. parties: numbers, or a text such as "0,3,7-9". medium: 9 inches at 160 dpi for a screen, 7 inches at 300 dpi for a page, 3.5
    for a column. ValueError for anything that cannot be drawn; ModuleNotFoundError without matplotlib.
    """
    if medium not in MEDIA:
        raise UsageError(f"medium is {medium!r}; it must be one of {', '.join(MEDIA)}")
    with use_look(MEDIA[medium]):
        return _drawn(
            split, kind, data, parse_parties(parties, split.n_parties), MEDIA[medium], options
        )


def save(
    split: FederatedSplit,
    path: str | Path,
    kind: str = "heatmap",
    *,
    data: Data | None = None,
    parties: Parties = None,
    medium: Literal["screen", "print", "column"] = "screen",
    **options: Any,
) -> Path:
    """`draw` into a file; its ending says which format (png, svg, pdf). The same split gives the same bytes with the same matplotlib."""
    path = _named(Path(path))
    figure = draw(split, kind, data=data, parties=parties, medium=medium, **options)
    about = {
        "Title": compose_title(split),
        (
            "Subject" if path.suffix == ".pdf" else "Description"
        ): f"{kind} of the split with digest {split.digest}",
    }
    stamp = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}[path.suffix]
    with use_look(MEDIA[medium]):
        buffer = BytesIO()
        figure.savefig(buffer, format=path.suffix[1:], metadata=about | stamp)
    write_whole(path, buffer.getvalue())
    return path


def needs_data(kind: str) -> bool:
    """Whether this kind shows features, and `draw` has to have `data`."""
    return "data" in signature(PICTURES.find(kind)).parameters


def prepare_picture_path(path: str | Path) -> Path:
    """The path of a picture, its folder made; ValueError where its ending is no format of pictures."""
    path = _named(Path(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _named(path: Path) -> Path:
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise UsageError(f"{path} does not say which format; end it in .png, .svg or .pdf")
    return path


def compose_title(split: FederatedSplit) -> str:
    """What was asked for, in a line: `digits, dir (beta 0.5), noise (sigma 0.1), 10 parties, seed 0`. Own files go by their names."""
    recipe = split.recipe
    steps = [(recipe.strategy, recipe.params), *((t.name, t.params) for t in recipe.transforms)]
    own = [
        f"{name} {fraction}"
        for name, fraction in (("val", recipe.val), ("test", recipe.test))
        if fraction
    ]
    return ", ".join(
        [
            _source(split),
            *(_step(name, p) for name, p in steps),
            format_count(split.n_parties, "party"),
            *own,
            f"seed {recipe.seed}",
        ]
    )


def _source(split: FederatedSplit) -> str:
    name, params = split.source.name, split.source.params
    if name in _OWN_FILES and split.root:
        name = Path(split.root).name
    if name == "hf" and (repo := params.get("repo") or Path(split.root).name):
        name = f"hf:{repo}"
    return f"{name} with its test set" if params.get("pool") else name


def _step(name: str, params: dict[str, Any]) -> str:
    said = {
        k.replace("_", " "): v
        for k, v in sorted(params.items())
        if k != "min_size" and v is not False and v is not None
    }
    shown = ", ".join(k if v is True else f"{k} {v}" for k, v in said.items())
    return f"{name} ({shown})" if shown else name


def _drawn(
    split: FederatedSplit,
    kind: str,
    data: Data | None,
    parties: Ints | None,
    medium: Medium,
    options: dict[str, Any],
) -> Figure:
    from matplotlib import figure as matplotlib_figure

    function, complete = PICTURES.find(kind), PICTURES.complete(kind, options)
    features = {"data": _checked(split, kind, data)} if needs_data(kind) else {}
    figure = matplotlib_figure.Figure(
        figsize=(medium.width, 0.55 * medium.width),
        dpi=medium.dpi,
        layout="constrained",
        facecolor="white",
    )
    caption = function(split, figure, parties, **features, **complete)
    _frame(figure, compose_title(split), caption or "", f"digest {split.digest[:16]}")
    figure.draw_without_rendering()  # lays out, and makes the tick labels with this look and no other
    figure.set_layout_engine("none")
    return figure


def _checked(split: FederatedSplit, kind: str, data: Data | None) -> Data:
    """The data of a split, which has to have features."""
    if data is None:
        raise UsageError(
            f"picture {kind!r} shows features; hand over the data set: data=niidpart.load(name, root)"
        )
    if faults := source_faults(split, data):
        raise UsageError(f"picture {kind!r}: another data set: {faults[0].message}")
    if data.features is None:
        raise UsageError(f"picture {kind!r} shows features, and this data set has labels alone")
    return data


def _frame(figure: Figure, title: str, caption: str, digest: str) -> None:
    """Title and caption above the picture, the digest below it: each gets room of its own."""
    width, body, size = figure.get_figwidth(), figure.get_figheight(), smallest_font() + 3
    margin, step = 0.08, 1.3 / 72
    lines = [(line, size, "black") for line in wrap_text(title, width - 2 * margin, size)]
    lines += [(line, size - 2, "0.35") for line in wrap_text(caption, width - 2 * margin, size - 2)]
    head, foot = sum(s for _, s, _ in lines) * step + margin, smallest_font() * step + 0.05
    total = head + body + foot
    figure.set_figheight(total)
    figure.set_layout_engine("constrained", rect=(0, foot / total, 1, body / total))
    top = total - margin / 2
    for line, points, colour in lines:
        figure.text(
            margin / width,
            top / total,
            make_printable(line),
            fontsize=points,
            color=colour,
            va="top",
            ha="left",
        )
        top -= points * step
    figure.text(
        1 - margin / width,
        0.04 / total,
        digest,
        ha="right",
        va="bottom",
        fontsize=smallest_font(),
        color="0.4",
        family="monospace",
    )
