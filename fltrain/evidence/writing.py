"""Tables as Markdown, CSV, LaTeX and JSON."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from niidpart.formats._csv_table import mark_text
from niidpart.splits.recipe import JSON

from .api import EvidenceTable
from .comparing import Comparison
from .families import ComparisonFamily
from .layout import describe_summary, lay_out, list_marks
from .ranking import Ranking
from .tables import TableEntry, TableRow

_LATEX_SIGNS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "…": r"\ldots{}",
    # At the head of a line \\ and \midrule would take these for options of theirs.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "|": r"\textbar{}",
}


def write_markdown(table: EvidenceTable) -> str:
    """Return a table of Markdown; a value that is claimed to be the best is bold."""
    laid = lay_out(table)
    head = [_escape_markdown(title) for title in laid.header]
    n_values = len(head) - laid.n_keys
    rule = ["---"] * laid.n_keys + ["---:"] * n_values
    lines = [head, rule]
    for number, line in enumerate(laid.lines):
        shown = []
        for place, word in enumerate(line):
            cell = _escape_markdown(word)
            if (number, place) in laid.bold:
                cell = f"**{cell}**"
            shown.append(cell)
        lines.append(shown)
    written = []
    for line in lines:
        cells = " | ".join(line)
        written.append(f"| {cells} |")
    return "\n".join(written)


def _escape_markdown(text: str) -> str:
    """Return a text that stays within its cell, and is neither code nor HTML there."""
    for sign in "\\|`*_<>[]&~$":
        text = text.replace(sign, f"\\{sign}")
    return _drop_controls(text)


def _drop_controls(text: str) -> str:
    """Return a text in one line, without signs that steer a terminal or turn what follows."""
    plain = " ".join(text.split())
    return "".join(sign for sign in plain if sign.isprintable())


def write_latex(table: EvidenceTable) -> str:
    """Return a table of LaTeX with the rules of booktabs; bold where a test carries it."""
    laid = lay_out(table)
    n_values = len(laid.header) - laid.n_keys
    columns = "l" * laid.n_keys + "r" * n_values
    titles = [_stack_title(title) for title in laid.header]
    lines = [
        *(f"% {line}" for line in _list_captions(table)),
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _join_latex(titles),
        r"\midrule",
    ]
    for number, line in enumerate(laid.lines):
        words = []
        for place, word in enumerate(line):
            cell = _escape_latex(word)
            if (number, place) in laid.bold:
                cell = rf"\textbf{{{cell}}}"
            words.append(cell)
        lines.append(_join_latex(words))
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines)


def _stack_title(title: str) -> str:
    """Return a title of LaTeX, each `axis=value` below the other words: columns stay narrow."""
    lines: list[str] = []
    goes_on = False
    for word in title.split():
        is_value = "=" in word
        if goes_on and not is_value:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
        goes_on = not is_value
    escaped = [_escape_latex(line) for line in lines]
    if len(escaped) < 2:
        return "".join(escaped)
    stacked = r"\\".join(escaped)
    return rf"\shortstack[r]{{{stacked}}}"


def _join_latex(words: Sequence[str]) -> str:
    """Return a line of a table."""
    joined = " & ".join(words)
    return rf"{joined} \\"


def _escape_latex(text: str) -> str:
    plain = _drop_controls(text)
    return "".join(_LATEX_SIGNS.get(sign, sign) for sign in plain)


def _list_captions(table: EvidenceTable) -> list[str]:
    """Return what the caption has to say, in lines that LaTeX leaves out."""
    said = ["needs \\usepackage{booktabs}; mean and sample deviation over n trials"]
    places: dict[str, list[str]] = {}
    for family in table.families:
        told = f"better than each other row, {family.test}, {family.over}"
        places.setdefault(told, []).append(family.place)
    n_families = len(table.families)
    for told, where in places.items():
        among = ", ".join(filter(None, where))
        if len(where) == n_families > 1:
            among = "each column"
        bold = f"bold in {among}" if among else "bold"
        said.append(f"{bold}: {told}")
    said += list_marks(table)
    said += table.notes
    return [" ".join(line.split()) for line in said]


def write_csv(table: EvidenceTable) -> str:
    """Return a line for each row, column and measure, with all that is known of it."""
    written = io.StringIO()
    axes = [*table.body.by, *table.body.column_axes]
    numbers = ["asked", "failed", "n", "mean", "std", "low", "high", "interval"]
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([*map(_write_key, axes), "measure", *numbers])
    for row, column, entry in table.body.list_entries():
        keys = [*map(_write_key, row.where.values()), *map(_write_key, column.values())]
        counts = [len(entry.records), len(entry.failed)]
        for measure in table.measures:
            summary = entry.values[measure.title]
            told = describe_summary(summary)
            writer.writerow([*keys, measure.title, *counts, *told.values()])
    return written.getvalue().removesuffix("\n")


def _write_key(value: object) -> object:
    """Return what a cell says of a row: a name in one line that no spreadsheet computes."""
    return mark_text(_drop_controls(value)) if isinstance(value, str) else value


def describe_table(table: EvidenceTable) -> JSON:
    """Return a table with its tests for machines; docs/json.md lists the fields."""
    return {
        "study": table.study,
        "group": table.group,
        "metric": table.measures[0].title,
        "by": list(table.body.by),
        "columns": [dict(where) for where in table.body.columns],
        "measures": [measure.title for measure in table.measures],
        "rows": [_describe_row(row) for row in table.rows],
        "families": [_describe_family(family) for family in table.families],
        "ranking": None if table.ranking is None else _describe_ranking(table.ranking),
        "notes": list(table.notes),
        "differences": list(table.differences),
    }


def _describe_row(row: TableRow) -> JSON:
    entries = [None if entry is None else _describe_entry(entry) for entry in row.entries]
    told = {
        "n": row.n,
        "cells": row.cells,
        "mean": row.mean,
        "std": row.std,
        "entries": entries,
    }
    return dict(row.where) | told


def _describe_entry(entry: TableEntry) -> JSON:
    values = {}
    for title, found in entry.values.items():
        values[title] = describe_summary(found)
    return {
        "asked": len(entry.records),
        "done": entry.n,
        "failed": [record.name for record in entry.failed],
        "runs": [record.name for record in entry.records],
        "party_models": entry.party_models,
        "mixed": list(entry.mixed),
        "values": values,
    }


def _describe_family(family: ComparisonFamily) -> JSON:
    return {
        "column": family.column,
        "shared": family.shared,
        "measure": family.measure,
        "level": family.level,
        "size": family.size,
        "over": family.over,
        "comparisons": [describe_comparison(one) for one in family.comparisons],
    }


def describe_comparison(one: Comparison) -> JSON:
    """Return a comparison for machines."""
    told: dict[str, Any] = {
        "first": one.first,
        "second": one.second,
        "verdict": one.verdict,
        "better": one.better or None,
        "reason": one.reason,
        "p_holm": one.p_holm,
        "p_wilcoxon_holm": one.p_wilcoxon_holm,
        "detectable": one.detectable,
        "needed": one.needed,
        "pairs_for_wanted": one.pairs_for_wanted,
        "reachable": one.reachable,
    }
    found = one.statistics
    if found is None:
        return told | {"n": 0}
    interval = found.interval
    return told | {
        "n": found.n,
        "mean": found.mean,
        "std": found.deviation,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "interval": None if interval is None else interval.kind,
        "p": found.p,
        "p_wilcoxon": found.p_wilcoxon,
        "wins": found.wins,
        "wins_low": found.wins_low,
        "wins_high": found.wins_high,
        "correlation": found.correlation,
    }


def _describe_ranking(ranking: Ranking) -> JSON:
    return {
        "mean_ranks": dict(ranking.mean_ranks),
        "blocks": ranking.n_blocks,
        "statistic": ranking.statistic,
        "p": ranking.p,
        "critical_difference": ranking.critical_difference,
        "alike": [list(group) for group in ranking.alike],
        "why_no_claim": ranking.why_no_claim,
    }
