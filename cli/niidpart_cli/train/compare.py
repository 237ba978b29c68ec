"""`fltrain compare`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ..command import AdvisingCommand
from ..tables import format_table
from ..terminal import say, say_table, to_one_line
from .metric_option import declare_metric, join_names

Row = Mapping[str, Any]
# Whose models numbers are of, where they are not those that parties are served -> mark, and words.
_MARKS = {
    "own": ("*", "of parties' own models"),
    "fine-tuned": ("+", "of models that parties have fine-tuned"),
}
_COMMON = ("algorithm", "trials", "rounds", "MB moved")  # columns that tell runs apart seldom
_OF_PARTIES = {"parties %": "party_mean", "worst %": "party_worst"}
_OF_OWN = {"personal %": "personal"}
_OF_NEW = {"new %": "new_mean", "new worst %": "new_worst", "new tuned %": "new_tuned_mean"}


def compare_command() -> click.Command:
    return AdvisingCommand(
        "compare",
        callback=compare,
        help="A table of runs, or of all in a sweep: final and best test accuracy of what the "
        "server has, the parties' own accuracies beside it, rounds (37/400: a run that is not "
        "finished), bytes moved. Runs that differ "
        "in seeds alone are trials of one setting, and stand in one row with mean and sample "
        "standard deviation. Says in what else the runs differ.",
        params=[
            click.Argument(["runs"], type=click.Path(), nargs=-1, required=True),
            click.Option(
                ["--each"], is_flag=True, help="A row for each run, also where there are trials."
            ),
            declare_metric("A column with the last value of this metric"),
            click.Option(
                ["--json", "as_json"],
                is_flag=True,
                help="Runs, settings and differences as JSON (docs/training.md).",
            ),
        ],
    )


def compare(
    runs: tuple[str, ...], each: bool, metric: tuple[tuple[str, ...], ...], as_json: bool
) -> None:
    from fltrain.runs.finding import find_runs

    named = find_runs(runs)  # before torch is imported, which takes seconds
    from fltrain.runs.comparison import list_differences, summarise, summarise_settings
    from fltrain.runs.folder import RunFolder
    from fltrain.runs.metric_names import find_metric, list_asked_numbers, shorten_name

    folders = {run: RunFolder.open(run) for run in named}
    histories = [folder.history for folder in folders.values()]
    shown = [find_metric(name, histories) for name in join_names(metric)]
    rows = [summarise(run, folder, shown) for run, folder in folders.items()]
    settings = summarise_settings(folders, rows)
    found = list_differences(folders)
    if as_json:
        say(json.dumps({"runs": rows, "settings": settings, "differences": found}))
        return
    is_grouped = has_trials(settings) and not each
    say_table(format_settings(settings) if is_grouped else format_summaries(rows))
    for line in found:
        say(to_one_line(f"not the same in all runs: {line}"), err=True)
    measured = list_asked_numbers(histories)
    if measured and not shown:
        names = ", ".join(map(shorten_name, measured))
        say(to_one_line(f"measured as well: {names} (--metric NAME shows them)"), err=True)


def has_trials(settings: Sequence[Row]) -> bool:
    """Return whether a setting has several runs."""
    return any(row["n"] > 1 for row in settings)


def format_summaries(rows: Sequence[Row]) -> str:
    """Return the table of what runs have reached, from their summaries."""
    of_parties = _list_party_columns(rows)
    others = _list_other_columns(rows, rows)
    header = ["run", "algorithm", "rounds", "final %", "best %", "at round", *_list_metrics(rows)]
    lines = []
    for row in rows:
        line = [
            row["run"],
            row["algorithm"],
            _format_rounds(row),
            _format_percent(row["final"]),
            _format_percent(row["best"]),
            row["best_round"] or "-",
            *[_format_metric(name, value) for name, value in row.get("metrics", {}).items()],
            *[_mark_models(row, _format_percent(row[key])) for key in of_parties.values()],
            *[_format_percent(row[key]) for key in others.values()],
            f"{row['bytes'] / 1e6:.2f}",
        ]
        lines.append(line)
    header += [*of_parties, *others, "MB moved"]
    table = format_table(header, lines, common=_COMMON)
    return "\n".join([table, *_list_marks(rows)])


def format_settings(settings: Sequence[Row]) -> str:
    """Return the table of what settings have reached, mean ± sample standard deviation.

    Below it stands which of them have trials that are not finished, and therefore no mean.
    """
    shown = [*_OF_PARTIES.values(), *_OF_OWN.values(), *_OF_NEW.values()]
    means = [{key: row[key]["mean"] for key in shown} for row in settings]
    of_parties = _list_party_columns(means)
    others = _list_other_columns(settings, means)
    lines = []
    for row in settings:
        values = [_format_mean(row[key], 100) for key in ("final", "best")]
        values += [_format_metric_mean(*metric) for metric in row.get("metrics", {}).items()]
        values += [_mark_models(row, _format_mean(row[key], 100)) for key in of_parties.values()]
        values += [_format_mean(row[key], 100) for key in others.values()]
        moved = _format_mean(row["bytes"], 1e-6)
        equal = moved.removesuffix(" ± 0.00")  # bytes seldom depend on a seed
        lines.append([row["setting"], row["n"], row["rounds"], *values, equal])
    header = ["setting", "trials", "rounds", "final %", "best %", *_list_metrics(settings)]
    header += [*of_parties, *others, "MB moved"]
    table = format_table(header, lines, common=_COMMON)
    notes = [
        f"{row['setting']}: {row['unfinished']} of {row['n']} trials not finished, so no mean"
        for row in settings
        if row["unfinished"]
    ]
    notes += [
        f"{row['setting']}: of the same seeds as another run, and so no trial more: "
        f"{', '.join(row['repeats'])}"
        for row in settings
        if row["repeats"]
    ]
    return "\n".join([table, *_list_marks(settings), *map(to_one_line, notes)])


def _format_rounds(row: Row) -> str:
    """Return how many rounds a run has done, of how many where it is not finished: 37/400."""
    if row["finished"]:
        return str(row["rounds"])
    return f"{row['rounds']}/{row['rounds_asked']}"


def _list_party_columns(rows: Sequence[Row]) -> dict[str, str]:
    """Return the columns of what parties get, {} where no run was evaluated at its parties."""
    if all(row[key] is None for row in rows for key in _OF_PARTIES.values()):
        return {}
    return _OF_PARTIES


def _list_other_columns(rows: Sequence[Row], values: Sequence[Row]) -> dict[str, str]:
    """Return the columns behind those: parties' own models, and parties that never trained.

    Own models where some run has them and the columns before are of what it fine-tuned, which
    starts from what is served. values: what each of the rows has, None for nothing.
    """
    pairs = zip(rows, values, strict=True)
    is_hidden = any(
        value["personal"] is not None and row["party_models"] != "own" for row, value in pairs
    )
    columns = (_OF_OWN if is_hidden else {}) | _OF_NEW
    return {
        title: key
        for title, key in columns.items()
        if any(value[key] is not None for value in values)
    }


def _mark_models(row: Row, value: str) -> str:
    """Return a value with the mark of the models that it is of."""
    mark, _ = _MARKS.get(row["party_models"], ("", ""))
    return value if value == "-" else f"{value}{mark}"


def _list_marks(rows: Sequence[Row]) -> list[str]:
    """Return what the marks in a table mean, in a line; [] where there are none."""
    used = {row["party_models"] for row in rows}
    said = [f"{mark} {words}" for models, (mark, words) in _MARKS.items() if models in used]
    if not said:
        return []
    return ["; ".join([*said, "the others are of the models that they are served"])]


def _format_mean(found: Mapping[str, float | None], scale: float) -> str:
    mean, deviation = found["mean"], found["std"]
    if mean is None:
        return "-"
    if deviation is None:
        return f"{scale * mean:.2f}"
    return f"{scale * mean:.2f} ± {scale * deviation:.2f}"


def _list_metrics(rows: Sequence[Row]) -> list[str]:
    """Return the headers of the metrics that were asked for besides."""
    from fltrain.runs.metric_names import is_percentage, shorten_name

    asked = rows[0].get("metrics", {}) if rows else {}
    return [f"{shorten_name(name)}{' %' if is_percentage(name) else ''}" for name in asked]


def _format_metric(name: str, value: float | None) -> str:
    from fltrain.runs.metric_names import format_value

    return "-" if value is None else format_value(name, value)


def _format_metric_mean(name: str, found: Mapping[str, float | None]) -> str:
    """Return a mean and its deviation, to as many digits as a single value has."""
    mean = _format_metric(name, found["mean"])
    if found["std"] is None:
        return mean
    return f"{mean} ± {_format_metric(name, found['std'])}"


def _format_percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
