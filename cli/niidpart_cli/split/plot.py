"""`niidpart plot`."""

import json
from pathlib import Path
from typing import Any

import click

from ..command import EntryCommand, Slot
from ..look import declare_look, describe_drawn, read_look
from ..options import (
    EntryName,
    declare_all,
    declare_data_memory,
    declare_data_root,
    list_entries,
    select_others,
)
from ..terminal import say
from .limits import declare_limits, read_limits
from .params import WHERE, declare_file, declare_json
from .progress import show_work

_EXAMPLES = """
  niidpart plot split.h5
  niidpart plot split.h5 --kind bars --order size --medium print -o bars.pdf
  niidpart plot split.h5 --kind noise --parties 0,4,9"""


def plot_command() -> click.Command:
    from niidpart.plot import PICTURES

    fixed = _declare_fixed()

    def plot(**values: Any) -> None:
        _draw(values, select_others(values, fixed))

    return EntryCommand(
        "plot",
        fixed=fixed,
        list_entry_options=lambda: declare_all(PICTURES),
        slots=[Slot.of("--kind", "kind", PICTURES)],
        callback=plot,
        help="Draw a split. The ending of the file says which format: png, svg or pdf.",
        describe_entries=lambda: (
            f"\b\nKinds:\n{list_entries(PICTURES)}\n\n\b\nExamples:{_EXAMPLES}"
        ),
    )


def _declare_fixed() -> list[click.Parameter]:
    return [
        declare_file(),
        click.Option(
            ["--kind"],
            type=EntryName("niidpart.plot"),
            default="heatmap",
            show_default=True,
            help="A name, or file.py:function.",
        ),
        declare_data_root(f"{WHERE[:-1]}; for kinds that show features."),
        declare_data_memory(),
        click.Option(
            ["--parties"],
            metavar="0,3,7-9",
            help="Which parties.  [all, or as many as can be seen]",
        ),
        *declare_look(),
        click.Option(
            ["-o", "--out"],
            type=click.Path(dir_okay=False),
            help="The picture.  [the split's name, the kind's if not heatmap, .png]",
        ),
        declare_json("Print the file, the kind and the split's digest as JSON."),
        *declare_limits(),
    ]


def _draw(values: dict[str, Any], options: dict[str, Any]) -> None:
    import niidpart
    from niidpart.data.of_split import open_data
    from niidpart.plot import needs_data, save
    from niidpart.plot.map_beta import find_stored_betas

    kind, file = values["kind"], Path(values["file"])
    with show_work():
        split = niidpart.read(file, **read_limits(values))
        data = open_data(split, values["data_root"]) if needs_data(kind) else None
    out = Path(values["out"] or file.with_name(f"{file.stem}{_suffix(kind)}.png"))
    is_replaced = out.exists()
    try:
        path = save(
            split,
            out,
            kind,
            data=data,
            parties=values["parties"],
            **read_look(values),
            **options,
        )
    except ModuleNotFoundError as error:
        if error.name != "sklearn":  # whose message says what else could be done
            raise
        raise click.ClickException(str(error)) from error
    if values["as_json"]:
        told = {"file": str(path), "kind": kind, "digest": split.digest, "replaced": is_replaced}
        say(json.dumps(told))
        return
    say(describe_drawn(path, is_replaced))
    if kind == "map-beta" and find_stored_betas(split, options.get("likelihood")) is not None:
        stored = "stored in the file by your own niidpart, or verified by it"
        say(f"its betas are {stored}; not computed anew", err=True)


def _suffix(kind: str) -> str:
    """What is added to the split's name, so that kinds do not replace one another."""
    return "" if kind == "heatmap" else f"-{kind.rpartition(':')[2]}"
