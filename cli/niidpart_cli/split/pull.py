"""`niidpart pull`."""

import json
from typing import Any

import click


def pull_command() -> click.Command:
    @click.command(
        help="Fetch a published split from the Hugging Face Hub and check it. Only the split file is fetched, of one commit; nothing of the "
        "repository is run or believed.\n\n\b\nExamples:\n  niidpart pull USER/NAME\n  niidpart pull USER/NAME@split-037e6944cdfcc5ec -o published.h5"
    )
    @click.argument("repo", metavar="USER/NAME[@REV]")
    @click.option(
        "-o",
        "--out",
        type=click.Path(dir_okay=False),
        default="split.h5",
        show_default=True,
        help="The split file.",
    )
    @click.option(
        "--digest", metavar="HEX", help="The digest, or its beginning, that the split has to have."
    )
    @click.option(
        "--max-size",
        type=click.IntRange(min=1),
        default=1024,
        show_default=True,
        metavar="MB",
        help="What the file may have.",
    )
    @click.option(
        "--max-memory",
        type=click.IntRange(min=1),
        metavar="MB",
        help="What reading it may take (2048).",
    )
    @click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="What fetching and reading it may take (600, and 60 of it to read).",
    )
    @click.option("--json", "as_json", is_flag=True, help="For machines.")
    def pull(
        repo: str, out: str, max_size: int, max_memory: int | None, as_json: bool, **options: Any
    ) -> None:
        from niidpart.hub.fetching import pull

        from .report import summary

        got = pull(
            repo,
            out=out,
            max_bytes=max_size << 20,
            max_memory=None if max_memory is None else max_memory << 20,
            **options,
        )
        if as_json:
            click.echo(
                json.dumps(
                    {
                        "file": str(got.path),
                        "url": got.url,
                        "commit": got.commit,
                        "digest": got.digest,
                    }
                )
            )
            return
        click.echo(
            f"{summary(got.split)}\nfrom   {got.url}, commit {got.commit}\nwritten to {got.path}"
        )

    return pull
