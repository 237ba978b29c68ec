"""`niidpart plot`."""

from pathlib import Path

import click


def plot_command() -> click.Command:
    from niidpart.plot import PICTURES

    @click.command(help="Draw who holds what. The ending of the file says which format: png, svg or pdf.")
    @click.argument("file", type=click.Path())
    @click.option("--kind", type=click.Choice(PICTURES.names()), default="heatmap", show_default=True, help="Which picture.")
    @click.option("-o", "--out", type=click.Path(dir_okay=False), help="The picture.  [the split's name, with .png]")
    def plot(file: str, kind: str, out: str | None) -> None:
        import niidpart
        from niidpart.plot import save

        click.echo(f"drawn in {save(niidpart.read(file), out or Path(file).with_suffix('.png'), kind)}")

    return plot
