"""`niidpart audit`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from niidpart.wording import count_noun

from ..command import EntryCommand, Slot
from ..look import declare_look, describe_drawn, read_look
from ..options import declare_all, list_entries, select_given, select_others
from ..tables import format_table
from ..terminal import say, to_one_line
from .import_ import declare_published, load_named_data
from .make import SOURCE_SLOT
from .params import declare_json
from .progress import show_work

if TYPE_CHECKING:
    from niidpart import Data
    from niidpart.auditing.auditing import Audit
    from niidpart.auditing.explanation import Explanation

_MEASURES = ("emd", "hellinger", "jensen-shannon", "total-variation")
_EXAMPLES = """
  niidpart audit split.h5
  niidpart audit cifar10_dirichlet0.3.txt --dataset cifar10
  niidpart audit client_dict.pkl --trust-pickle --dataset mnist --json"""


def audit_command() -> click.Command:
    from niidpart.data import SOURCES
    from niidpart.interop.importing import IMPORTERS

    format_options = declare_all(IMPORTERS)
    taken = {option.name for option in format_options}
    source_options = [option for option in declare_all(SOURCES) if option.name not in taken]
    fixed = _declare_fixed()

    def run_audit(**values: Any) -> None:
        options = select_others(values, [*fixed, *source_options])
        _audit(values, select_given(values, source_options), options)

    return EntryCommand(
        "audit",
        fixed=fixed,
        list_entry_options=lambda: [*format_options, *source_options],
        slots=[Slot.of("--from", "format", IMPORTERS), SOURCE_SLOT],
        callback=run_audit,
        help="Say what is wrong with a split file, or with what another program wrote, and which "
        "rule made it. Exit code 0; 1 where rows are held twice, overlap, are none or of other "
        "data; 3 where nothing says of which data a file is.",
        describe_entries=lambda: (
            f"\b\nFormats:\n{list_entries(IMPORTERS)}\n\n\b\nExamples:{_EXAMPLES}"
        ),
    )


def _declare_fixed() -> list[click.Parameter]:
    return [
        click.Argument(["file"], type=click.Path()),
        *declare_published("The data set whose rows the file names; its examples are compared."),
        click.Option(
            ["--plot"],
            type=click.Path(dir_okay=False),
            help="Draw what was found into this file: png, svg or pdf.",
        ),
        *declare_look(),
        declare_json("Print everything as JSON."),
    ]


def _audit(values: dict[str, Any], source: dict[str, Any], options: dict[str, Any]) -> None:
    from niidpart.auditing.auditing import audit
    from niidpart.auditing.picture import save_audit

    with show_work():
        data = _find_data(values, source)
        found = audit(values["file"], data=data, format=values["format"], **options)
    drawn = None
    if values["plot"] is not None:
        drawn = Path(values["plot"])
        is_replaced = drawn.exists()
        save_audit(found, drawn, **read_look(values))
    if values["as_json"]:
        picture = {} if drawn is None else {"picture": str(drawn)}
        say(json.dumps(found.to_json() | picture, allow_nan=False))
    else:
        say(describe_audit(found))
        if drawn is not None:
            say(describe_drawn(drawn, is_replaced))
        if found.advice:
            say(to_one_line(found.advice), err=True)
    click.get_current_context().exit(found.exit_code)


def _find_data(values: dict[str, Any], source: dict[str, Any]) -> "Data | None":
    """Return the data set, of a split file that which it names; None where none is asked for."""
    import niidpart
    from niidpart.auditing.subject import is_split_file
    from niidpart.data.of_split import open_data

    is_split = values["format"] is None and is_split_file(Path(values["file"]))
    if is_split and values["dataset"] is None and values["data_root"] is not None:
        return open_data(niidpart.read(values["file"]), values["data_root"])
    return load_named_data(values | {"folder": values["file"]}, source)


def describe_audit(found: "Audit") -> str:
    """Return an audit as text: the verdict first."""
    lines = [
        to_one_line(f"{found.name}: {found.verdict}"),
        to_one_line(f"read as {found.described}"),
    ]
    lines.append(_describe_size(found))
    lines += [to_one_line(f"{one.level:5}  {one.text}") for one in found.findings]
    blocks = ["\n".join(lines)]
    if found.explanations:
        blocks.append(_format_rules(found))
    if found.skew is not None:
        blocks.append(_format_skew(found))
    return "\n\n".join(blocks)


def _describe_size(found: "Audit") -> str:
    sizes = found.sizes
    verb = "holds" if found.n_parties == 1 else "hold"
    text = f"{count_noun(found.n_parties, 'party')} {verb} {count_noun(found.n_rows, 'row')}"
    if found.n is not None:
        text += f" of a data set of {found.n:,}"
    text += f"; a party has {sizes.min():,} to {sizes.max():,}"
    if found.counts is not None:
        n_classes = (found.counts > 0).sum(axis=1)
        text += f", of {n_classes.mean():.2f} of {len(found.class_names)} classes on average"
    return text


def _format_rules(found: "Audit") -> str:
    rows = []
    for one in found.explanations:
        called = ", ".join(f"{who}: {alpha:.3g}" for who, alpha in one.called.items())
        rows.append([one.rule, _format_value(one), f"{one.behind:,.0f}", called or one.text])
    return format_table(["rule", "option", "nats behind", "alpha by others' names"], rows)


def _format_value(one: "Explanation") -> str:
    if one.value is None:
        return "-"
    if one.option != "beta":
        return f"{one.option} {one.value:g}"
    return f"beta {one.value:.3g} ({one.low:.3g} to {one.high:.3g})"


def _format_skew(found: "Audit") -> str:
    assert found.skew is not None
    rows = []
    for one in found.skew.measures:
        if one.name in _MEASURES and one.form == "to-global":
            interval = "-" if one.low is None else f"{one.low:.3f} to {one.high:.3f}"
            rows.append([one.name, f"{one.value:.3f}", interval, f"{one.iid:.3f}"])
    return format_table(["skew, 0..1, to the whole", "value", "95 %", "IID"], rows)
