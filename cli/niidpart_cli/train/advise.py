"""`fltrain advise`."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from niidpart.wording import count_noun

from ..command import AdvisingCommand
from ..tables import format_table
from ..terminal import say, say_table, to_one_line
from .options import declare_moved_data

if TYPE_CHECKING:
    from fltrain.advice.own_results import OwnAnswer
    from fltrain.advice.printed_evidence import PrintedEvidence
    from fltrain.advice.tree import TreeAnswer, TreeBranch

_HELP = (
    "Which algorithm a split calls for. It measures label, feature and quantity skew, follows the "
    "decision tree of Li et al. (ICDE 2022) and shows what their tables say for it and against. "
    "--from STUDY answers from your own results as well: what is claimed to beat FedAvg where the "
    "skew is nearest, and how far such answers are off on data that is left out "
    "(docs/evidence.md)."
)
_NAMED = 3  # settings that a line names


def advise_command() -> click.Command:
    return AdvisingCommand(
        "advise",
        callback=advise,
        help=_HELP,
        params=[
            click.Argument(["split"], type=click.Path()),
            click.Option(
                ["--from", "study"],
                type=click.Path(),
                help="A study of your own to answer from too.",
            ),
            declare_moved_data(),
            click.Option(["--json", "as_json"], is_flag=True, help="For machines (docs/json.md)."),
        ],
    )


def advise(split: str, study: str | None, data_root: str | None, as_json: bool) -> None:
    from fltrain.advice.api import advise as find_advice

    found = find_advice(split, study=study, data_root=data_root)
    if as_json:
        say(json.dumps(found.to_json()))
        return
    profile = found.profile
    say(f"{found.digest[:12]}: {profile.n_parties} parties, {profile.n_classes} classes")
    _say_tree(found.tree)
    if found.own is not None:
        say()
        _say_own(found.own)


def _say_tree(tree: "TreeAnswer") -> None:
    for branch in tree.branches:
        say()
        _say_branch(branch)
    if tree.mixed is not None:
        say()
        say("both kinds at once, Table V")
        _say_evidence("", tree.mixed, tree.algorithm)
    say()
    taken = [branch.part for branch in tree.branches if branch.is_taken]
    say(f"the paper's tree (ICDE 2022, Fig. 7), for {' and '.join(taken)}: {tree.algorithm}")


def _say_branch(branch: "TreeBranch") -> None:
    say(f"{branch.part}: {'yes' if branch.is_taken else 'no'}")
    say(f"  {branch.measured}")
    if not branch.is_taken:
        return
    _say_evidence(f"all of {branch.part}, Table III", branch.evidence, branch.algorithm)
    if branch.nearest is not None:
        _say_evidence(f"of which {branch.setting}", branch.nearest, branch.algorithm)


def _say_evidence(what: str, found: "PrintedEvidence", algorithm: str) -> None:
    """Say how often an algorithm is best in some rows, and where it is ahead and behind."""
    if what:
        say(f"  {what}: {count_noun(len(found.rows), 'setting')}")
    counts = ", ".join(f"{name} {count}" for name, count in found.best.items())
    say(f"    best in: {counts}")
    say(
        f"    {algorithm} over fedavg: {found.gain:+.1f} points on average, "
        f"{found.least:+.1f} to {found.most:+.1f}"
    )
    say(f"    for: above by more than both deviations in {_name_some(found.ahead)}")
    say(f"    against: below by more than both in {_name_some(found.behind)}")


def _name_some(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)}: {', '.join(names[:_NAMED])}{more}"


def _say_own(own: "OwnAnswer") -> None:
    near = own.nearest
    say(
        to_one_line(
            f"your study, {own.measure.title}: nearest is {near.split} (Hellinger "
            f"{near.profile.hellinger:.3f}, Gini {near.profile.gini:.3f})"
        )
    )
    rows = [[name, f"{_scale(own) * mean:.2f}"] for name, mean in near.means.items()]
    say_table(format_table(["row", own.measure.title], rows))
    say(to_one_line(own.reason))
    say(to_one_line(f"your own results: {own.algorithm}"))
    if not own.regrets:
        say(f"the study has one {own.left_out}, so none can be left out to judge this by")
        return
    say()
    say(f"regret on each {own.left_out} that is left out, over {_count_left_out(own)} splits")
    judged = sorted(own.regrets, key=lambda one: one.mean)
    lines = [
        [one.rule, f"{_scale(own) * one.mean:.2f}", f"{_scale(own) * one.worst:.2f}"]
        for one in judged
    ]
    say_table(format_table(["rule", "mean", "worst"], lines))


def _scale(own: "OwnAnswer") -> float:
    return 100.0 if own.measure.is_share else 1.0


def _count_left_out(own: "OwnAnswer") -> int:
    return len(own.regrets[0].chosen)
