"""`fltrain`: run, resume, plot, compare and presets."""

import contextlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

# Waiting threads spin for a moment only, then sleep. Beside other busy programs long spinning costs up to many times the
# run, not spinning at all two thirds more when alone (docs/benchmarks.md). libgomp reads it when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

from fltrain.runs import grid

from . import sweep
from .bar import Bar, said
from .presets import PresetName, options_of, presets_command
from .program import Entry, click_type, given, given_besides, listing, table, union_options
from .ranked import Ranked


def _run() -> click.Command:
    from fltrain.settings import Settings

    completing = (
        "_FLTRAIN_COMPLETE" in os.environ
    )  # completion has to be fast: it does without torch, so without the algorithms' own options
    algorithm_options: list[click.Option] = []
    listed = model_names = ""
    if not completing:
        from fltrain.algorithms import ALGORITHMS
        from fltrain.models import MODELS

        algorithm_options = sweep.sweepable(union_options(ALGORITHMS.all_options()))
        model_names = ", ".join(MODELS.names()) + ", or "
        listed = listing(ALGORITHMS)
    setting_options = sweep.sweepable([_setting_option(f) for f in fields(Settings)], grid.SWEPT)
    preset = _preset_option()
    first: list[click.Parameter] = [
        click.Argument(
            ["split"],
            type=click.Path(),
            nargs=-1,
            required=True,
            metavar="SPLIT|hub:USER/NAME[@REV]...",
        ),
        click.Option(
            ["--algorithm"],
            type=Entry("fltrain.algorithms"),
            default="fedavg",
            show_default=True,
            help="One of the above, or file.py:function.",
        ),
    ]
    rest = _rest(preset, model_names, setting_options)

    def run(**values: Any) -> None:
        import fltrain
        from fltrain.algorithms import build
        from fltrain.engine.allocator import keep_memory

        keep_memory()  # the command owns its process
        sweep.words(values)
        if sweep.is_swept(values):
            _sweep(values, [*first, *rest], setting_options)
            return
        split = _opened(values["split"][0])
        options = given_besides(values, [*first, *rest])
        algorithm = build(
            values["algorithm"],
            **options_of(values["preset"], split, values["algorithm"], values["model"]) | options,
        )
        settings = given(values, [preset, *setting_options])
        out = values["out"] or _free(
            f"runs/{algorithm.name}-{split.digest[:8]}-{settings.get('seed', 0)}"
        )
        placed = {"model": values["model"], "data_root": values["data_root"], "out": out}
        with Bar() as progress, _kept(out):
            done = fltrain.run(split, algorithm=algorithm, progress=progress, **placed, **settings)
        _finished(done, values["as_json"])

    return sweep.Sweepable(
        "run",
        plug="--algorithm",
        own_options=_own_options,
        params=[*first, *algorithm_options, *rest],
        callback=run,
        help=f"Train an algorithm on a split file, or on a published split.\n\n{sweep.HELP}\n\n\b\nAlgorithms:\n{listed}\n\n\b\n"
        "Examples:\n  fltrain run split.h5\n  fltrain run split.h5 --algorithm solo --rounds 20 --local-epochs 5 --out runs/solo\n"
        "  fltrain run split.h5 --preset niid --rounds 10\n  fltrain run split.h5 --algorithm fedprox --mu 0.001,0.01,0.1,1 --trials 3",
    )


def _opened(where: str) -> Any:
    from niidpart.hub.fetching import read_local_or_published

    return read_local_or_published(
        where,
        lambda got: click.echo(
            f"{got.url}, commit {got.commit}, split {got.split.digest}", err=True
        ),
    )


@contextlib.contextmanager
def _kept(out: str | Path) -> Iterator[None]:
    """Says on an interrupt how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nwhat was reached is kept; go on with: fltrain resume {out}", err=True)
        raise


def _sweep(
    values: dict[str, Any], fixed: Sequence[click.Parameter], settings: Sequence[click.Parameter]
) -> None:
    import fltrain

    splits = {
        name: _opened(where)
        for name, where in zip(grid.split_names(values["split"]), values["split"], strict=True)
    }
    asked = sweep.asked(values, fixed, settings)
    first = next(iter(splits.values()))
    options_of(
        values["preset"], first, values["algorithm"], values["model"]
    )  # says where the data is not the paper's; the sweep looks them up itself
    name = values["algorithm"].rpartition(":")[2]
    out = Path(values["out"] or _free(f"runs/{name}-{first.digest[:8]}-sweep"))
    cells = math.prod(map(len, asked["grid"].values())) * len(splits) * values["trials"]
    with Bar(cells) as progress, _kept(out):
        done = fltrain.sweep(splits, out=out, progress=progress, **asked)
    sweep.finished(done, out, values["as_json"], _summaries)


def _rest(
    preset: click.Option, model_names: str, setting_options: list[click.Option]
) -> list[click.Parameter]:
    """The options of `run` that stand behind those of the algorithms."""
    return [
        preset,
        click.Option(
            ["--model"],
            type=Entry("fltrain.models"),
            help=f"{model_names}file.py:function.  [the papers' model for such data]",
        ),
        *setting_options,
        click.Option(
            ["--trials"],
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="Runs of each setting, with seeds --seed, --seed + 1, ...",
        ),
        click.Option(
            ["--data-root"],
            type=click.Path(),
            help="Where the data set lies, if not where the split file says.",
        ),
        click.Option(
            ["--out"],
            type=click.Path(file_okay=False),
            help="The run folder.  [runs/ALGORITHM-DIGEST-SEED; of a sweep -sweep]",
        ),
        click.Option(
            ["--json", "as_json"],
            is_flag=True,
            help="Print the last round's metrics as JSON, of a sweep a list.",
        ),
    ]


def _preset_option() -> click.Option:
    return click.Option(
        ["--preset"],
        type=PresetName(),
        help="A paper's whole setting: model, optimiser, schedule, sampling, augmentation, the algorithm's options. Any option given beside it "
        "takes the place of its value. fltrain presets lists them.",
    )


def _own_options(name: str) -> list[click.Option]:
    from fltrain.algorithms import ALGORITHMS

    return sweep.sweepable(
        union_options((name, p) for p in ALGORITHMS.options(ALGORITHMS.find(name)).values())
    )


def _setting_option(setting: Any) -> click.Option:
    """The option of a field of Settings. Not given means the default of Settings."""
    flag, default = setting.name.replace("_", "-"), setting.default
    shown = "" if default is None or default == () else f"  [default: {default}]"
    if setting.type is bool:
        return click.Option(
            [f"--{flag}/--no-{flag}", setting.name],
            default=None,
            help=setting.metadata["help"] + shown,
        )
    return click.Option(
        [f"--{flag}", setting.name],
        type=click_type(setting.type),
        default=None,
        help=setting.metadata["help"] + shown,
    )


def _free(wanted: str) -> Path:
    """A folder that is not there yet: `wanted`, else with -2, -3, ..."""
    path, n = Path(wanted), 1
    while path.exists():
        n += 1
        path = Path(f"{wanted}-{n}")
    return path


def _finished(done: Any, as_json: bool) -> None:
    picture = done.folder / "curves.png"
    if as_json:
        click.echo(json.dumps(done.history[-1] | {"folder": str(done.folder)}))
        return
    missing = "not drawn: pip install 'niidpart[plot]', then fltrain plot"
    rounds = f"{len(done.history)} round{'s' if len(done.history) > 1 else ''}"
    click.echo(f"{done.algorithm.name}, {rounds}: {said(done.history[-1:])}")
    click.echo(
        f"metrics  {done.folder / 'metrics.jsonl'}\ncurves   {picture if picture.exists() else missing}\nrun      {done.folder}"
    )


def _resume() -> click.Command:
    @click.command(
        help="Go on with a run, or a whole sweep, that was stopped or killed. The end is the same, byte for byte, as if it had not been."
    )
    @click.argument("run", type=click.Path())
    @click.option(
        "--data-root", type=click.Path(), help="Where the data set lies now, if it moved."
    )
    @click.option(
        "--workers",
        type=int,
        help="Worker processes, or threads of native, from here on; the end is the same.  [those of the run]",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print the last round's metrics as JSON.")
    @click.option(
        "--trust",
        is_flag=True,
        help="Run the code outside fltrain that the folder names (file.py:function). Not for a stranger's folder.",
    )
    def resume(
        run: str, data_root: str | None, workers: int | None, as_json: bool, trust: bool
    ) -> None:
        import fltrain
        from fltrain.engine.allocator import keep_memory
        from fltrain.runs.folder import is_sweep, read_cells

        keep_memory()
        how = {"data_root": data_root, "trust": trust, "workers": workers}
        if is_sweep(run):
            with Bar(len(read_cells(run))) as progress:
                cells = fltrain.resume_sweep(run, progress=progress, **how)
            sweep.finished(cells, Path(run), as_json, _summaries)
            return
        with Bar() as progress:
            done = fltrain.resume(run, progress=progress, **how)
        _finished(done, as_json)

    return resume


def _plot() -> click.Command:
    @click.command(
        help="Draw the curves of runs, or of all in a sweep, together. The ending of the file says which format: png, svg or pdf."
    )
    @click.argument("runs", type=click.Path(), nargs=-1, required=True)
    @click.option(
        "-o",
        "--out",
        type=click.Path(dir_okay=False),
        default="curves.png",
        show_default=True,
        help="The picture.",
    )
    def plot(runs: tuple[str, ...], out: str) -> None:
        from fltrain.runs import curves as draw
        from fltrain.runs.folder import RunFolder, each

        click.echo(
            f"drawn in {draw.save({run: RunFolder.opened(run).history for run in each(runs)}, out)}"
        )

    return plot


def _compare() -> click.Command:
    @click.command(
        help="A table of runs, or of all in a sweep: final and best test accuracy, rounds, bytes moved. Says where they differ."
    )
    @click.argument("runs", type=click.Path(), nargs=-1, required=True)
    @click.option("--json", "as_json", is_flag=True, help="For machines.")
    def compare(runs: tuple[str, ...], as_json: bool) -> None:
        from fltrain.runs.comparison import differences, summary
        from fltrain.runs.folder import RunFolder, each

        folders = {run: RunFolder.opened(run) for run in each(runs)}
        rows = [summary(run, folder) for run, folder in folders.items()]
        warned = differences(folders)
        if as_json:
            click.echo(json.dumps({"runs": rows, "differences": warned}))
            return
        click.echo(_summaries(rows))
        for line in warned:
            click.echo(f"not the same in all runs: {line}", err=True)

    return compare


def _summaries(rows: Sequence[dict[str, Any]]) -> str:
    """The table of what runs have reached."""
    personal = any(r["personal"] is not None for r in rows)
    header = [
        "run",
        "algorithm",
        "rounds",
        "final %",
        "best %",
        "at round",
        *(["personal %"] if personal else []),
        "MB moved",
    ]
    cells = [
        [
            r["run"],
            r["algorithm"],
            r["rounds"],
            _percent(r["final"]),
            _percent(r["best"]),
            r["best_round"] or "-",
        ]
        + ([_percent(r["personal"])] if personal else [])
        + [f"{r['bytes'] / 1e6:.2f}"]
        for r in rows
    ]
    return table(header, cells)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


main = Ranked(
    "fltrain",
    help="Train federated algorithms on a split file of niidpart.",
    makers={
        "run": ("Train an algorithm on a split.", _run),
        "resume": ("Go on with a run or a sweep.", _resume),
        "plot": ("Draw the curves of runs together.", _plot),
        "compare": ("A table of final and best accuracy.", _compare),
        "presets": ("List the settings of papers.", presets_command),
    },
)
main = click.version_option(package_name="niidpart", prog_name="fltrain")(main)

if __name__ == "__main__":
    main()
