"""`--metric`: which metrics of finished runs are shown."""

from collections.abc import Iterable, Sequence
from itertools import chain

import click

from ..options import NameList


def declare_metric(purpose: str) -> click.Option:
    """Return the option; purpose: what a metric that it names is shown as."""
    return click.Option(
        ["--metric"],
        type=NameList(),
        multiple=True,
        help=f"{purpose}: macro-f1 and others as in --metrics, or a name of docs/training.md; "
        "several with commas, or several times.",
    )


def join_names(given: Iterable[Sequence[str]]) -> list[str]:
    """Return the names that were given, each once."""
    return list(dict.fromkeys(chain.from_iterable(given)))
