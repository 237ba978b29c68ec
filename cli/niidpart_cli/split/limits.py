"""The options of commands that read an untrusted split file."""

from typing import Any

import click

_HELP = "The file comes from elsewhere: parse it in a child process with limits, ignore its hint."


def declare_limits(help: str = _HELP, limited: str = "reading") -> list[click.Parameter]:
    """Return --untrusted, --max-memory and --timeout. limited: what the two limits hold for."""
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


def read_limits(values: dict[str, Any]) -> dict[str, Any]:
    """Return the limits as keywords of `niidpart.read` and `niidpart.verify`."""
    return {
        "untrusted": values["untrusted"],
        "max_memory": to_bytes(values["max_memory"]),
        "timeout": values["timeout"],
    }


def to_bytes(megabytes: int | None) -> int | None:
    """Return a number of megabytes in bytes."""
    return None if megabytes is None else megabytes << 20
