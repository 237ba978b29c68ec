"""Who beats whom, in how many of the pairs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from niidpart.plot import wrap_text
from niidpart.registry import Above, Below
from niidpart.wording import count_noun

from ..evidence.comparing import LEVEL, Comparison, JudgeRules
from ..evidence.families import ComparisonFamily, ComparisonWords, compare_rows
from ._key import add_key
from ._look import choose_shade, find_small
from ._panels import is_first_in_line, is_last_in_column, lay_panels
from ._runs import FigureRuns
from ._text import FigureText

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Figure = Any  # the registry resolves annotations where matplotlib may be missing

__all__ = ["pairs"]

_AHEAD, _BEHIND = "#0072B2", "#E69F00"  # of Okabe and Ito: blue and orange
_LABEL = 1.15  # inches that a name takes at most
_CELL = 0.42  # inches at most
_LEAST_CELL = 0.2  # which hold three letters and a star


def pairs(
    runs: FigureRuns,
    figure: Figure,
    *,
    show: Annotated[str, "What is compared: last, best, worst, ..."] = "last",
    level: Annotated[
        float, "How often any claim may be wrong where nothing differs.", Above(0), Below(1)
    ] = LEVEL,
) -> FigureText:
    """A matrix of pairs: in which share of them the row has the better value, ties half.

    Runs on one split with one seed are a pair. Bold with a star is what the sign-flip test claims,
    with Holm's correction over the matrix; coloured without one, no evidence of a difference. A
    number without colour could carry no claim, whatever it were, and a dash has no pairs.
    """
    measure = runs.find_measure(show)
    arranged = runs.arrange(measure)
    words = ComparisonWords(JudgeRules(level=level))
    families = compare_rows(arranged.body, measure, words, runs.words.failed_as)
    names = [_list_names(family) for family in families]
    most = max(map(len, names))
    least = most * _LEAST_CELL + _LABEL / 2
    panels = lay_panels(figure, [family.place for family in families], least=least)
    _set_height(figure, panels, most)
    is_alike = all(one == names[0] for one in names)
    notes = [*runs.notes, *arranged.faults]
    for ax, family, of_family in zip(panels, families, names, strict=True):
        _draw_matrix(ax, family, of_family, is_loss=bool(measure.is_loss))
        is_named_below = is_alike and not is_last_in_column(ax)
        _name_rows(ax, of_family, is_named_below=is_named_below)
        notes += _list_refusals(family)
    caption = _describe(families, level)
    add_key(figure, said=caption)
    return FigureText(caption, arranged.name_runs(), notes)


def _list_names(family: ComparisonFamily) -> list[str]:
    """Return the rows of a family, in order."""
    firsts = [one.first for one in family.comparisons]
    seconds = [one.second for one in family.comparisons]
    return list(dict.fromkeys([*firsts, *seconds]))


def _set_height(figure: Figure, panels: Sequence["Axes"], n: int) -> None:
    """Make cells as high as they are wide, up to a size."""
    place = panels[0].get_subplotspec()
    grid = None if place is None else place.get_gridspec()
    lines, across = (1, 1) if grid is None else (grid.nrows, grid.ncols)
    room = (figure.get_figwidth() - _LABEL) / across - 0.1
    cell = min(room / n, _CELL)
    figure.set_figheight(lines * (n * cell + _LABEL))


def _draw_matrix(
    ax: "Axes", family: ComparisonFamily, names: Sequence[str], *, is_loss: bool
) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    paper = choose_shade(1.0)
    colours = LinearSegmentedColormap.from_list("pairs", [_BEHIND, paper, _AHEAD])
    places = {name: place for place, name in enumerate(names)}
    n = len(names)
    for one in family.comparisons:
        row, column = places[one.first], places[one.second]
        ahead = _find_share(one, is_loss)
        behind = None if ahead is None else 1 - ahead
        _draw_cell(ax, (row, column), ahead, one, colours)
        _draw_cell(ax, (column, row), behind, one, colours)
    grey = choose_shade(0.9)
    for place in range(n):
        _fill(ax, (place, place), grey)
    end = n - 0.5
    ax.set(xlim=(-0.5, end), ylim=(end, -0.5), aspect="equal")
    for spine in ax.spines.values():
        spine.set_visible(False)


def _name_rows(ax: "Axes", names: Sequence[str], *, is_named_below: bool) -> None:
    """Write the names of rows and columns, where no other panel has them."""
    n = len(names)
    small = find_small()
    nothing = [""] * n
    shown = []
    for name in names:
        lines = wrap_text(name, _LABEL, small, 1)
        shown.append(" ".join(lines))
    below = nothing if is_named_below else shown
    beside = shown if is_first_in_line(ax) else nothing
    ax.set_xticks(range(n), below, rotation=90, fontsize=small)
    ax.set_yticks(range(n), beside, fontsize=small)
    ax.tick_params(length=0)


def _find_share(one: Comparison, is_loss: bool) -> float | None:
    """Return in which share of the pairs the first is better; None where there are no pairs."""
    if one.statistics is None:
        return None
    wins = one.statistics.wins
    return 1 - wins if is_loss else wins


def _draw_cell(
    ax: "Axes", place: tuple[int, int], share: float | None, one: Comparison, colours: Any
) -> None:
    row, column = place
    if share is None:
        ax.text(column, row, "–", ha="center", va="center", color=choose_shade(0.4))
        return
    if one.verdict == "refused":
        colour = choose_shade(1.0)
        letters = choose_shade(0.4)
    else:
        colour = colours(share)
        letters = _choose_letters(colour)
    _fill(ax, place, colour)
    star = "*" if one.better else ""
    ax.text(
        column,
        row,
        f"{_write_share(share)}{star}",
        ha="center",
        va="center",
        fontsize=find_small(),
        fontweight="bold" if one.better else "normal",
        color=letters,
    )


def _fill(ax: "Axes", place: tuple[int, int], colour: Any) -> None:
    from matplotlib.patches import Rectangle

    row, column = place
    corner = (column - 0.47, row - 0.47)
    ax.add_patch(Rectangle(corner, 0.94, 0.94, facecolor=colour, edgecolor=choose_shade(0.85)))


def _write_share(share: float) -> str:
    """Return .83, 1 or 0: as short as it goes."""
    if share in (0, 1):
        return f"{share:.0f}"
    return f"{share:.2f}".lstrip("0")


def _choose_letters(colour: Any) -> str:
    """Return the colour of letters on a field: white on a dark one, else black."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else "black"


def _list_refusals(family: ComparisonFamily) -> list[str]:
    """Return a line for each reason why claims are refused, and how many pairs it takes."""
    place = f"{family.place}: " if family.place else ""
    reasons: dict[str, int] = {}
    for one in family.comparisons:
        if one.verdict == "refused":
            reasons[one.reason] = reasons.get(one.reason, 0) + 1
    lines = []
    for reason, n in reasons.items():
        lines.append(f"{place}{count_noun(n, 'comparison')} refused: {reason}")
    return lines


def _describe(families: Sequence[ComparisonFamily], level: float) -> str:
    """Return what numbers and colours are."""
    counts = set()
    without = ""
    for family in families:
        for one in family.comparisons:
            if one.statistics is not None:
                counts.add(one.statistics.n)
            if one.verdict == "refused":
                without = "; without colour: so few pairs carry no claim"
    told = " or ".join(map(str, sorted(counts))) or "no"
    size = families[0].size
    corrected = f", Holm over {size}" if size > 1 else ""
    return (
        f"share of {told} pairs in which the row is better than the column; bold with a star: "
        f"claimed by the sign-flip test{corrected} at {level:g}{without}"
    )
