"""`fltrain features`."""

import json
from pathlib import Path

import click

from niidpart.errors import UsageError

from ..command import AdvisingCommand
from ..terminal import say
from .options import declare_moved_data, declare_trust


def features_command() -> click.Command:
    return AdvisingCommand(
        "features",
        callback=features,
        help="Write what the model of a run makes of training examples, the numbers before its "
        "last layer, as a data set whose groups are the parties. niidpart make --strategy group "
        "and niidpart plot --kind features draw it (docs/pictures.md).",
        params=[
            click.Argument(["run"], type=click.Path()),
            click.Option(
                ["-o", "--output"],
                type=click.Path(dir_okay=False),
                default="features.npz",
                show_default=True,
                help="An .npz with x, y and group.",
            ),
            click.Option(
                ["--sample"],
                type=click.IntRange(min=1),
                default=1000,
                show_default=True,
                help="Examples, as many of each party, evenly along its rows.",
            ),
            declare_moved_data(),
            declare_trust(),
            click.Option(["--json", "as_json"], is_flag=True, help="For machines."),
        ],
    )


def features(
    run: str, output: str, sample: int, data_root: str | None, trust: bool, as_json: bool
) -> None:
    from fltrain.runs.finding import require_run_folder

    if not output.endswith(".npz"):
        raise UsageError(f"-o {output} must end in .npz, which niidpart make reads")
    require_run_folder(run)  # before torch is imported, which takes seconds
    from fltrain.runs.trained_features import read_features

    found = read_features(run, sample=sample, data_root=data_root, trust=trust)
    is_there = Path(output).exists()
    found.write(output)
    n, width = found.x.shape
    parties = len(set(found.party.tolist()))
    if as_json:
        told = {"file": output, "n": n, "features": width, "parties": parties}
        say(json.dumps(told | {"round": found.round, "replaced": is_there}))
        return
    what = f"{width} features of {n} examples at {parties} parties, after round {found.round}"
    say(f"{what}, which replaced {output}" if is_there else what)
    say(
        f"draw with: niidpart make --dataset {output} --strategy group --parties {parties} "
        "-o features.h5 && niidpart plot features.h5 --kind features --method tsne"
    )
