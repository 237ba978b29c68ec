"""`niidpart cite`."""

import json
from typing import Any

import click

from ..command import AdvisingCommand
from ..terminal import say
from .limits import declare_limits, read_limits
from .params import declare_json, declare_trust, read_trust
from .progress import show_work


def cite_command() -> click.Command:
    return AdvisingCommand(
        "cite",
        callback=cite,
        help="Print BibTeX of the papers of a split's data set, strategy and transforms, and of "
        "the split: its digest, the version of niidpart, and the command that makes it again. Of a "
        "published file, or of a name of niidpart registry list: its data set, its paper and where "
        "it stands. Where no paper is known a comment says so.",
        params=[
            click.Argument(["split"], metavar="FILE|NAME"),
            declare_trust(),
            declare_json(),
            *declare_limits(),
        ],
    )


def cite(split: str, trust_pickle: bool, as_json: bool, **limits: Any) -> None:
    import niidpart
    from niidpart.citing.published import is_own_file

    with show_work():
        if is_own_file(split):
            found = niidpart.cite(niidpart.read(split, **read_limits(limits)))
        else:
            found = niidpart.cite(split, **read_trust(trust_pickle))
    say(json.dumps(found.to_json()) if as_json else found.to_bibtex())
