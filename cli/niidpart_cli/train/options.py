"""The options of `fltrain run`, and the headings that they stand under."""

from collections.abc import Sequence
from dataclasses import fields

import click

from fltrain.common import SWEPT
from fltrain.settings import GROUPS, SETTINGS
from niidpart.registry import Option, UnimportedRegistry, list_names

from ..command import Heading, Slot
from ..options import (
    EntryName,
    NameList,
    declare_all,
    declare_data_memory,
    declare_data_root,
    declare_entry,
    to_click_type,
    to_flag,
)
from .curves import declare_draw
from .presets import PRESET_NAME
from .sweep import make_sweepable

# What stands under the heading of some settings besides them.
_BESIDES = {
    "Rounds": ("trials",),
    "Local training": ("loss",),
    "Evaluation": ("metrics",),
    "Output": ("out", "track", "draw", "as_json"),
}


def list_headings() -> tuple[Heading, ...]:
    """Return what is trained, and a heading for each subject of the settings."""
    what = ("algorithm", "model", "init_from", "init_from_partial", "preset", "data_root")
    headings = [Heading("What is trained", (*what, "data_memory"))]
    for title, group in GROUPS.items():
        names = [field.name for field in fields(group)]
        headings.append(Heading(title, (*names, *_BESIDES.get(title, ()))))
    return tuple(headings)


HEADINGS = list_headings()

# Their files import torch, for which help and completion should not wait.
ALGORITHMS = UnimportedRegistry("fltrain.algorithms", "algorithm")


def declare_moved_data(purpose: str = "") -> click.Option:
    """Return the option of where the data set of a run lies now; purpose: what it is for alone."""
    return declare_data_root(_begin(purpose, "where the data set lies now, if it moved."))


def declare_trust(purpose: str = "") -> click.Option:
    """Return the option that lets a run folder name code; purpose: what it is for alone."""
    help = "run the code outside fltrain that the folder names (file.py:function). Not for an "
    return click.Option(["--trust"], is_flag=True, help=_begin(purpose, f"{help}untrusted folder."))


def declare_bundle() -> click.Option:
    """Return the option that says how many cells of a study are trained at once."""
    return click.Option(
        ["--bundle"],
        type=click.IntRange(min=1),
        help="The most cells of one kind (docs/studies.md) that a worker trains side by side; 1: "
        "each by itself. On a GPU cells are trained by themselves unless this is given.  [several "
        "where they are small, and end with the same bytes]",
    )


def declare_lease() -> click.Option:
    """Return the option that says when a worker that is not heard counts as dead."""
    return click.Option(
        ["--lease"],
        type=click.FloatRange(min=15),
        help="Seconds without a sign of life until a worker of another machine counts as dead, and "
        "its cells are taken up; more where the disk stalls.  [60]",
    )


def _begin(purpose: str, help: str) -> str:
    return f"{purpose}{help}" if purpose else f"{help[0].upper()}{help[1:]}"


def declare_settings() -> list[click.Option]:
    """Return the options of the settings; not given means the default of `Settings`."""
    options = [_declare_setting(setting) for setting in SETTINGS.values()]
    return make_sweepable(options, SWEPT)


def declare_algorithms() -> list[click.Option]:
    """Return the options of all algorithms."""
    return make_sweepable(declare_all(ALGORITHMS))


def declare_fixed(settings: Sequence[click.Option]) -> list[click.Parameter]:
    """Return the parameters of `run` that do not depend on the algorithm."""
    return [*_declare_what(), *settings, *_declare_objective(), *_declare_places()]


def _declare_what() -> list[click.Parameter]:
    """Return the parameters that say what is trained on which split."""
    return [
        click.Argument(
            ["split"],
            type=click.Path(),
            nargs=-1,
            required=True,
            metavar="SPLIT|hub:USER/NAME[@REV]...",
        ),
        click.Option(
            ["--algorithm"],
            type=EntryName("fltrain.algorithms"),
            default="fedavg",
            show_default=True,
            help="A name, or file.py:function.",
        ),
        PRESET,
        click.Option(
            ["--model"],
            type=EntryName("fltrain.models"),
            help=f"{', '.join(list_names('fltrain.models'))}, torchvision:NAME, or "
            "file.py:function; several with a + between, where parties differ.  "
            "[the papers' model for such data]",
        ),
        click.Option(
            ["--init-from"],
            type=click.Path(),
            metavar="FILE",
            help="Weights to begin with: a safetensors file, or a state_dict that torch saved.",
        ),
        click.Option(
            ["--init-from-partial"],
            is_flag=True,
            help="What of --init-from does not fit the model is left out, and named.",
        ),
    ]


def _declare_objective() -> list[click.Parameter]:
    """Return the parameters that say what is minimised and measured, and how often."""
    return [
        click.Option(
            ["--loss"],
            metavar="FILE.PY:FUNCTION",
            help="A loss of your own, (logits, classes) -> mean over the batch.  [cross entropy]",
        ),
        click.Option(
            ["--metrics"],
            type=NameList(),
            help="Besides accuracy and loss, with commas: "
            f"{', '.join(list_names('fltrain.metrics'))}, file.py:function.",
        ),
        click.Option(
            ["--trials"],
            type=click.INT,
            callback=_check_trials,
            default=1,
            show_default=True,
            help="Runs of each setting, with seeds --seed, --seed + 1, ...",
        ),
    ]


def _declare_places() -> list[click.Parameter]:
    """Return the parameters that say where data is read, and where a run is written and told."""
    return [
        declare_data_root("Where the data set lies, if not where the split file says."),
        declare_data_memory("--data-memory"),
        click.Option(
            ["--out"],
            type=click.Path(file_okay=False),
            help="The run folder.  [runs/ALGORITHM-DIGEST-SEED; of a sweep -sweep]",
        ),
        TRACK,
        declare_draw(),
        click.Option(
            ["--json", "as_json"],
            is_flag=True,
            help="Print the last round's metrics as JSON, of a sweep a list.",
        ),
    ]


def _check_trials(ctx: click.Context, param: click.Parameter, value: int) -> int:
    if value < 1:
        raise click.UsageError(f"--trials is {value}; it must be at least 1", ctx)
    return value


PRESET = click.Option(
    ["--preset"],
    type=PRESET_NAME,
    help="A paper's whole setting: model, optimiser, schedule, sampling, augmentation, the "
    "algorithm's options. Any option given with it takes the place of its value. fltrain presets "
    "lists them.",
)


TRACK = click.Option(
    ["--track"],
    multiple=True,
    metavar="NAME[=PLACE]",
    help=f"Hand each round's metrics to {', '.join(list_names('fltrain.trackers'))} or "
    "file.py:function as well; several times for several. PLACE is a folder, a project or an "
    "experiment (docs/trackers.md).",
)


ALGORITHM_SLOT = Slot(
    flag="--algorithm",
    kind="algorithm",
    declare=lambda name: make_sweepable(declare_entry(ALGORITHMS, name)),
    summarise=ALGORITHMS.summary,
)


def _declare_setting(setting: Option) -> click.Option:
    flag, default = to_flag(setting.name), setting.default
    help = setting.help
    if default is not None and default != ():
        help = f"{help}  [default: {default}]"
    if setting.annotation is bool:
        return click.Option([f"{flag}/--no-{flag[2:]}", setting.name], default=None, help=help)
    kind = to_click_type(setting.annotation)
    return click.Option([flag, setting.name], type=kind, default=None, help=help)
