"""`niidpart verify`."""

import json
from typing import TYPE_CHECKING, Any

import click

from niidpart.errors import UsageError

from ..command import AdvisingCommand
from ..options import declare_data_memory, declare_data_root
from ..terminal import say, to_one_line
from .handed_over import declare_handed_over, hand_over
from .limits import declare_limits, read_limits
from .params import WHERE_OR_FILE, declare_file, declare_json
from .progress import WorkLine

if TYPE_CHECKING:
    from niidpart import Verdict

_UNTRUSTED = (
    "The file comes from elsewhere: parse it and derive it in child processes with limits, ignore "
    "its hint."
)


def verify_command() -> click.Command:
    return AdvisingCommand(
        "verify",
        callback=click.pass_context(verify),
        help="Check every rule of the format, and derive the split again from its recipe and its "
        "data. Exit code 0, 1 (faults) or 3.",
        params=[
            declare_file(),
            declare_data_root(WHERE_OR_FILE),
            declare_data_memory(),
            *declare_handed_over(),
            click.Option(
                ["--trust"],
                type=click.Path(dir_okay=False),
                multiple=True,
                metavar="FILE.py",
                help="A file of your own: a strategy or transform that the recipe cites from it is "
                "run, if its text is the same. Several times for several files.",
            ),
            declare_json(),
            *declare_limits(_UNTRUSTED, "reading and deriving"),
        ],
    )


def verify(
    ctx: click.Context,
    file: str,
    data_root: str | None,
    trust: tuple[str, ...],
    noisy_labels: str | None,
    embeddings: str | None,
    as_json: bool,
    **limits: Any,
) -> None:
    import niidpart

    try:
        with WorkLine() as line:
            data = None
            if (noisy_labels or embeddings) and limits["untrusted"]:
                raise UsageError(
                    "an untrusted file is derived in a process that is handed nothing; leave out "
                    "--noisy-labels and --embeddings, or --untrusted"
                )
            if noisy_labels or embeddings:
                data = niidpart.open_data(niidpart.read(file), data_root)
                data = hand_over(data, noisy_labels, embeddings)
            verdict = niidpart.verify(
                file,
                data=data,
                data_root=data_root,
                trust=trust,
                told=line.tell,
                **read_limits(limits),
            )
    except OSError as error:
        if as_json:  # machines read an answer in any case
            say(json.dumps({"file": file, "error": str(error), "exit": 1}))
        raise
    if as_json:
        say(json.dumps({"file": file} | verdict.to_json()))
    elif verdict.faults:
        say(_describe_kind(file, verdict))
        for fault in verdict.faults:
            say(to_one_line(f"  {fault}"))
    elif verdict.derived:
        again = f"its recipe gives the same split again: {verdict.digest}"
        say(f"{file} is valid, and {again}")
    else:
        say(f"{file} is valid, but was not re-derived: {verdict.why_not}")
    ctx.exit(verdict.exit_code)


def _describe_kind(file: str, verdict: "Verdict") -> str:
    """Return what the faults below are of: the file, or the data that was found for it."""
    if not verdict.is_of_other_data:
        return f"{file} breaks rules of docs/format.md:"
    advice = "have that data again (--data-root), or make the split anew"
    return f"{file} is whole; the data found is not, or no longer, what it was made of; {advice}:"
