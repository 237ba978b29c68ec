"""`fltrain plot`."""

import click


def plot_command() -> click.Command:
    return click.Command(
        "plot",
        callback=plot,
        help="Draw the curves of runs, or of all in a sweep, together. The ending of the file says "
        "which format: png, svg or pdf.",
        params=[
            click.Argument(["runs"], type=click.Path(), nargs=-1, required=True),
            click.Option(
                ["-o", "--out"],
                type=click.Path(dir_okay=False),
                default="curves.png",
                show_default=True,
                help="The picture.",
            ),
        ],
    )


def plot(runs: tuple[str, ...], out: str) -> None:
    from fltrain.runs import curves
    from fltrain.runs.folder import RunFolder, each

    histories = {run: RunFolder.opened(run).history for run in each(runs)}
    click.echo(f"drawn in {curves.save(histories, out)}")
