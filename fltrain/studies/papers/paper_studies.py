"""The studies of papers: plans that come with the package, each at two scales. Needs no torch.

`papers/PRESET/NAME.toml` is the study `PRESET/NAME`; the folder is the registry. A file has the
words of a plan (docs/studies.md) for the full scale, and beside them

paper, shows, about: whose it is, which table or figure, and what stands in it;
[small]: the same words once more, as far as the small scale says them otherwise;
[[printed]]: numbers that the paper prints (`printed.py`);
[[figures]]: how its figures are drawn (`paper_figures.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from niidpart.errors import UsageError
from niidpart.registry import did_you_mean

from ..plans.overlay import lay_over
from ..plans.plan_text import PlanPath, PlanText, read_plan_text, write_plan_text

Scale = Literal["small", "full"]

SCALES: tuple[Scale, ...] = ("small", "full")
_FOLDER = Path(__file__).parent
_WORDS = ("paper", "shows", "about", "small", "printed", "figures")  # of a file, and of no plan
_SMALL = "small"


@dataclass(frozen=True)
class PaperStudy:
    """A table or a figure of a paper, as a study.

    Parameters
    ----------
    name : str
        `niid/table3`: of the preset, and of the file.
    paper, shows, about : str
        Whose it is, "Table III", and what stands in it.
    full, small : mapping
        The words of the plan, and those that the small scale lays over them.
    printed : sequence of mapping
        The numbers that the paper prints, as the file has them.
    figures : sequence of mapping
        How its figures are drawn, as the file has them.
    lines : mapping
        Where each word stands in the file.
    """

    name: str
    paper: str
    shows: str
    about: str
    full: Mapping[str, Any]
    small: Mapping[str, Any]
    printed: Sequence[Mapping[str, Any]] = ()
    figures: Sequence[Mapping[str, Any]] = ()
    lines: Mapping[PlanPath, int] = field(default_factory=dict)

    def find_title(self, scale: Scale) -> str:
        """Return what the plan is called: `niid-table3`, and of the small scale `...-small`."""
        title = self.name.replace("/", "-")
        return title if scale == "full" else f"{title}-{scale}"

    def make_plan(self, scale: Scale) -> dict[str, Any]:
        """Return the words of the plan at a scale, as `fltrain.study` takes them.

        Examples
        --------
        >>> find_paper_study("niid/table3").make_plan("full")["trials"]
        3
        """
        words = dict(self.full) if scale == "full" else lay_over(self.full, self.small)
        return {"name": self.find_title(scale)} | words

    def write_plan(self, scale: Scale, changes: Mapping[str, Any] | None = None) -> PlanText:
        """Return the plan at a scale with the lines of the file, for errors.

        changes: words of a plan that are laid over it. UsageError where a setting of them would
        change nothing, since the plan gives it several values.
        """
        values = self.make_plan(scale)
        lines = dict(self.lines)
        if scale == "small":
            inner = {path[1:]: line for path, line in lines.items() if path[0] == _SMALL}
            lines |= {path: line for path, line in inner.items() if path}
        if changes:
            _require_free(values, changes.get("fixed", {}), self.name)
            values = lay_over(values, changes)
        return PlanText(
            values=values,
            name=f"{self.name} ({scale})",
            text=write_plan_text(values),
            lines=lines,
        )


def _require_free(plan: Mapping[str, Any], fixed: Mapping[str, Any], name: str) -> None:
    """Raise UsageError where a plan says itself what is to be fixed: what is nearer would win."""
    for part in (plan, *plan.get("groups", [])):
        said = set(part.get("axes", {}))
        for algorithm in part.get("algorithms", []):
            said |= set() if isinstance(algorithm, str) else set(algorithm)
        for condition in part.get("when", []):
            said |= set(condition["set"])
        for word in fixed:
            if word in said:
                raise UsageError(
                    f"{name} says {word} itself, cell by cell, so another value for all would "
                    f"change nothing; --only {word}=... takes some of its values"
                )


def list_paper_studies() -> list[str]:
    """Return the names of all studies of papers.

    Returns
    -------
    list of str
        Paper by paper; tables before figures, by their numbers.

    Examples
    --------
    >>> "niid/table3" in list_paper_studies()
    True
    """
    files = sorted(_FOLDER.glob("*/*.toml"), key=_find_place)
    return [f"{file.parent.name}/{file.stem}" for file in files]


def _find_place(file: Path) -> tuple[str, bool, str, int, str]:
    """Return what studies are sorted by: fig9 comes before fig10, and both after the tables."""
    word = file.stem.rstrip("0123456789")
    digits = file.stem.removeprefix(word)
    number = int(digits) if digits else 0
    return file.parent.name, not word.startswith("table"), word, number, file.stem


def find_paper_study(name: str) -> PaperStudy:
    """Return the study of a name.

    Parameters
    ----------
    name : str
        The preset and the file: `niid/table3`.

    Returns
    -------
    PaperStudy

    Raises
    ------
    UsageError
        There is none; the message has the nearest name.

    Examples
    --------
    >>> find_paper_study("niid/table3").shows
    'Table III'
    """
    known = list_paper_studies()
    if name not in known:
        raise UsageError(
            f"there is no study {name!r} of a paper; {did_you_mean(name, known)}; "
            "fltrain study --paper lists them"
        )
    return _read(name)


def find_study_of(title: str) -> tuple[PaperStudy, Scale] | None:
    """Return the study of a paper whose plan is called so, and at which scale; None for others."""
    for name in list_paper_studies():
        study = _read(name)
        for scale in SCALES:
            if study.find_title(scale) == title:
                return study, scale
    return None


def _read(name: str) -> PaperStudy:
    text = read_plan_text(_FOLDER / f"{name}.toml")
    values = text.values
    plan = {word: value for word, value in values.items() if word not in _WORDS}
    return PaperStudy(
        name=name,
        paper=values["paper"],
        shows=values["shows"],
        about=values["about"],
        full=plan,
        small=values["small"],
        printed=values.get("printed", []),
        figures=values.get("figures", []),
        lines=text.lines,
    )
