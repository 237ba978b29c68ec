"""The options of commands that read a split file from elsewhere."""

from collections.abc import Callable
from typing import Any

import click

_HELP = "The file comes from elsewhere: parse it in a child process with limits, ignore its hint."


def elsewhere_options(help: str = _HELP, limited: str = "reading") -> list[click.Option]:
    """--untrusted, --max-memory and --timeout. limited: what the two limits hold for."""
    return [
        click.Option(["--untrusted"], is_flag=True, help=help),
        click.Option(
            ["--max-memory"],
            type=click.IntRange(min=1),
            metavar="MB",
            help=f"With --untrusted: what {limited} may take (2048).",
        ),
        click.Option(
            ["--timeout"],
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help=f"With --untrusted: what {limited} may take (60).",
        ),
    ]


def elsewhere(
    help: str = _HELP, limited: str = "reading"
) -> Callable[[click.Command], click.Command]:
    """Adds the options to a command; its function takes their values as `**limits`, for `limits_of`."""

    def added(command: click.Command) -> click.Command:
        command.params += elsewhere_options(help, limited)
        return command

    return added


def limits_of(values: dict[str, Any]) -> dict[str, Any]:
    """The keywords of `niidpart.read` and `niidpart.verify`."""
    memory = values["max_memory"]
    return {
        "untrusted": values["untrusted"],
        "max_memory": None if memory is None else memory << 20,
        "timeout": values["timeout"],
    }
