"""The help of `niidpart make` for a replay, whose options are not those of its namesake here."""

import click

from ..command import EntryCommand, find_value


class MakeCommand(EntryCommand):
    """`make`: with `--like` its help shows the options, and the defaults, of the peer's replay."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        like = find_value("--like", args)
        if like and any(name in args for name in ctx.help_option_names):
            replay = _find_replay(like, find_value("--strategy", args))
            dataset = find_value("--dataset", args)
            args = ["--strategy", replay, *(["--dataset", dataset] if dataset else []), "--help"]
        return super().parse_args(ctx, args)


def _find_replay(like: str, strategy: str | None) -> str:
    """Return the strategy that replays a peer's; the peer itself where none is said."""
    import niidpart

    peer = like.partition("@")[0]
    return niidpart.compose(strategy=strategy, like=like).strategy if strategy else peer
