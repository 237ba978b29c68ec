"""Tables of evidence, comparisons and ranks as text."""

from typing import TYPE_CHECKING

from niidpart.wording import count_noun

from ..tables import format_table
from ..terminal import to_one_line

if TYPE_CHECKING:
    from fltrain.evidence.api import EvidenceTable
    from fltrain.evidence.comparing import Comparison
    from fltrain.evidence.families import ComparisonFamily
    from fltrain.evidence.measures import RunMeasure
    from fltrain.evidence.ranking import Ranking

_COMMON = ("algorithm", "n", "rounds", "MB moved")  # columns that tell rows apart seldom
_NOTHING = "-"


def format_evidence(table: "EvidenceTable") -> str:
    """Return a table of means, and what its marks mean."""
    from fltrain.evidence.layout import lay_out, list_marks

    laid = lay_out(table)
    lines = [format_table(laid.header, laid.lines, n_keys=laid.n_keys, common=_COMMON)]
    if len(table.body.columns) > 1 and len(table.measures) == 1:
        lines.insert(0, table.measures[0].title)
    return "\n".join([*lines, *list_marks(table)])


def format_family(family: "ComparisonFamily", measure: "RunMeasure") -> str:
    """Return the comparisons of a family: a line each, and below them why some claim nothing."""
    place = f" in {family.place}" if family.place else ""
    n = len(family.comparisons)
    compared = f"{family.measure}{place}: {count_noun(n, 'comparison')} in pairs"
    head = f"{compared}, {family.over}; {family.test}"
    header = ["first", "second", "difference", "95 % interval", "p", "p Holm", "Wilcoxon Holm"]
    header += ["first larger", "correlation", "seen from", "claim"]
    rows = [_list_words(one, measure) for one in family.comparisons]
    if any(one.pairs_for_wanted for one in family.comparisons):
        header.insert(-1, "pairs wanted")
        rows = [
            [*row[:-1], one.pairs_for_wanted or _NOTHING, row[-1]]
            for row, one in zip(rows, family.comparisons, strict=True)
        ]
    table = format_table(header, rows, n_keys=2)
    reasons: dict[str, list[str]] = {}
    for one in family.comparisons:
        if one.verdict == "refused":
            reasons.setdefault(one.reason, []).append(f"{one.first} and {one.second}")
    told = []
    for why, who in reasons.items():
        on = "any pair" if len(who) == n > 1 else ", ".join(who)
        told.append(f"no claim on {on}: {why}")
    return "\n".join([to_one_line(head), table, *map(to_one_line, told)])


def _list_words(one: "Comparison", measure: "RunMeasure") -> list[object]:
    found = one.statistics
    if found is None:
        return [one.first, one.second, *[_NOTHING] * 8, "refused"]
    interval = _NOTHING
    if found.interval is not None:
        low, high = found.interval.low, found.interval.high
        interval = f"{_format_difference(measure, low)} .. {_format_difference(measure, high)}"
    return [
        one.first,
        one.second,
        _format_difference(measure, found.mean),
        interval,
        _format_p(found.p),
        _format_p(one.p_holm),
        _format_p(one.p_wilcoxon_holm),
        f"{100 * found.wins:.0f}%",
        _NOTHING if found.correlation is None else f"{found.correlation:.2f}",
        _NOTHING if one.detectable is None else _format_difference(measure, one.detectable),
        f"{one.better} is better" if one.better else _describe_verdict(one),
    ]


def _describe_verdict(one: "Comparison") -> str:
    return "refused" if one.verdict == "refused" else one.reason


def _format_difference(measure: "RunMeasure", value: float) -> str:
    return f"{100 * value:.2f}" if measure.is_share else f"{value:.4g}"


def _format_p(value: float | None) -> str:
    if value is None:
        return _NOTHING
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"


def format_ranking(ranking: "Ranking") -> str:
    """Return mean ranks, best first, and which of them cannot be told apart."""
    head = (
        f"ranks over {ranking.n_blocks} columns, 1 is the best: Friedman's p "
        f"{_format_p(ranking.p)}, critical difference {ranking.critical_difference:.2f}"
    )
    rows = [[name, f"{rank:.2f}"] for name, rank in ranking.mean_ranks.items()]
    alike = [f"not told apart: {', '.join(group)}" for group in ranking.alike]
    told = [ranking.why_no_claim] if ranking.why_no_claim else alike
    return "\n".join([head, format_table(["row", "mean rank"], rows), *map(to_one_line, told)])
