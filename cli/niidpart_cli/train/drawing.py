"""What `fltrain figure` does: it draws, saves, and says where the figure is and what it lacks."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from niidpart.errors import UsageError

from ..look import describe_drawn, read_look
from ..terminal import say, to_one_line
from .metric_option import join_names
from .packed import open_packed
from .planning import show_reading
from .where_option import read_where

if TYPE_CHECKING:
    from fltrain.figures import DrawnFigure, FigureLook, FigureWords
    from fltrain.studies.folder.study_folder import StudyFolder
    from fltrain.studies.papers.paper_figures import PaperFigure

# Of a paper's figure its file says it.
_OF_WORDS = ("by", "panels", "where", "group", "metric", "each", "better")


def draw_figure(kind: str, values: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Draw runs by what was given on the command line."""
    _require_kind(kind, values["runs"])
    look = _read_look(values)
    out = Path(values["out"] or f"{kind.rpartition(':')[2]}.pdf")
    is_replaced = out.exists()
    with show_reading(), open_packed(values["runs"]) as paths:
        from fltrain.figures import draw, save

        drawn = draw(paths, kind, words=_read_words(values), look=look, **options)
        path = save(drawn, out, look)
    _tell(drawn, kind, path, is_replaced, bool(values["as_json"]))


def _require_kind(kind: str, paths: Sequence[str]) -> None:
    """Raise UsageError where a folder stands in the place of the kind, or no folder is named."""
    from fltrain.figures import FIGURES

    if kind not in FIGURES.names() and Path(kind).is_dir():
        raise UsageError(
            f"{kind} is a folder, and the kind of figure comes first, as in fltrain figure curves "
            f"{kind}; there are: {', '.join(FIGURES.names())}"
        )

    if not paths:
        raise UsageError(
            f"name what {kind} is to show: a study, or runs; fltrain figure {kind} RUNS"
        )


def _read_words(values: Mapping[str, Any]) -> "FigureWords":
    from fltrain.figures import FigureWords

    return FigureWords(
        metrics=join_names(values["metric"]),
        by=values.get("by") or (),
        panels=values.get("panels"),
        where=read_where(values.get("where") or ()),
        each=values["each"],
        partial=bool(values.get("partial")),
        failed_as=values.get("failed_as"),
        better=values.get("better"),
        group=values.get("group") or "",
    )


def _read_look(values: Mapping[str, Any]) -> "FigureLook":
    from fltrain.figures import FigureLook

    return FigureLook(**read_look(values), style=values.get("style") or ())


def _tell(drawn: "DrawnFigure", kind: str, path: Path, is_replaced: bool, as_json: bool) -> None:
    """Print where a figure is, and on stderr what is missing in it."""
    text = drawn.text
    for note in text.notes:
        say(to_one_line(note), err=True)
    if as_json:
        series = {label: list(names) for label, names in text.series.items()}
        told = {
            "file": str(path),
            "kind": kind,
            "caption": text.caption,
            "series": series,
            "notes": list(text.notes),
            "replaced": is_replaced,
        }
        say(json.dumps(told))
        return
    say(describe_drawn(path, is_replaced))
    if text.caption:
        say(to_one_line(text.caption))


def draw_paper_figures(paths: Sequence[str], values: Mapping[str, Any]) -> None:
    """Draw the figures of a paper of its study, a file each; those that it lacks runs for are told.

    UsageError where none can be drawn.
    """
    from fltrain.studies.folder.study_folder import StudyFolder

    if len(paths) > 1:
        raise UsageError(f"--paper is of one study, and {len(paths)} were given")
    if any(values[word] for word in _OF_WORDS):
        raise UsageError("--paper says itself which runs and metric; leave --by and such out")
    with open_packed(paths) as opened:
        _draw_figures_of(StudyFolder.open(opened[0]), values)


def _draw_figures_of(study: "StudyFolder", values: Mapping[str, Any]) -> None:
    from fltrain.studies.papers.paper_figures import find_paper_figures

    stem = Path(values["out"] or f"{study.name}.pdf")
    faults = []
    for figure in find_paper_figures(study):
        named = re.sub(r"\W+", "-", figure.shows.lower()).strip("-")
        out = stem.with_name(f"{stem.stem}-{named}{stem.suffix}")
        try:
            if figure.is_of_splits:
                _draw_splits(study, figure, out, values)
            else:
                _draw_runs(study, figure, out, values)
        except UsageError as error:
            faults.append(f"{figure.shows} is not drawn: {error}")
            say(to_one_line(faults[-1]), err=True)
    if len(faults) == len(find_paper_figures(study)):
        raise UsageError("none of the figures could be drawn")


def _draw_runs(
    study: "StudyFolder", figure: "PaperFigure", out: Path, values: Mapping[str, Any]
) -> None:
    from dataclasses import replace

    from fltrain.figures import draw, save

    look = _read_look(values)
    words = replace(figure.words, partial=bool(values["partial"]), failed_as=values["failed_as"])
    is_replaced = out.exists()
    drawn = draw([study.path], figure.kind, words=words, look=look, **figure.options)
    path = save(drawn, out, look)
    _tell(drawn, figure.kind, path, is_replaced, bool(values["as_json"]))


def _draw_splits(
    study: "StudyFolder", figure: "PaperFigure", out: Path, values: Mapping[str, Any]
) -> None:
    """Draw each split of a study by a picture of niidpart's."""
    import niidpart
    from niidpart.plot import save

    for name, file in _list_splits(study):
        path = out.with_name(f"{out.stem}-{name}{out.suffix}")
        is_replaced = path.exists()
        save(niidpart.read(file), path, figure.kind, **read_look(values), **figure.options)
        if values["as_json"]:
            told = {"file": str(path), "kind": figure.kind, "replaced": is_replaced}
            say(json.dumps(told))
        else:
            say(describe_drawn(path, is_replaced))


def _list_splits(study: "StudyFolder") -> Iterator[tuple[str, Path]]:
    """Yield the splits of a study's cells, each with a name of a few words."""
    from fltrain.studies.folder.roster import Roster

    seen = set()
    for cell in Roster(study).list_rows():
        if cell.split not in seen:
            seen.add(cell.split)
            where = next(iter(cell.where.values()))
            called = f"{where.get('split', '')} {where.get('split_seed', '')}"
            yield re.sub(r"[^\w.]+", "-", called).strip("-"), study.find_split(cell.split)
