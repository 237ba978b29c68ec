"""The help of `niidpart make` for a replay, whose options are not those of its namesake here."""

import click

from ..command import EntryCommand, Slot, find_value


class MakeCommand(EntryCommand):
    """`make`: with `--like` its help shows the options, and the defaults, of the peer's replay."""

    rule = ""  # of the replay, whose options alone are shown; "" for all

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        like = find_value("--like", args)
        if like and any(name in args for name in ctx.help_option_names):
            replay = _find_replay(like, find_value("--strategy", args))
            dataset = find_value("--dataset", args)
            self.rule = find_value("--strategy", args) or ""
            args = ["--strategy", replay, *(["--dataset", dataset] if dataset else []), "--help"]
        return super().parse_args(ctx, args)

    def _choose(self, slot: Slot, name: str) -> None:
        super()._choose(slot, name)
        if self.rule and slot.flag == "--strategy":
            options = self.chosen[slot.flag][1]
            others = _list_other_options(name, self.rule)
            kept = [option for option in options if option.name not in others]
            self.chosen[slot.flag] = name, kept


def _list_other_options(replay: str, rule: str) -> set[str]:
    """Return the options of a replay that its other rules have, and the one that says the rule."""
    from niidpart.strategies import STRATEGIES

    rules = getattr(STRATEGIES.module(replay), "RULES", {})
    return {"rule"}.union(*rules.values()).difference(rules.get(rule, ()))


def _find_replay(like: str, strategy: str | None) -> str:
    """Return the strategy that replays a peer's; the peer itself where none is said."""
    import niidpart

    peer = like.partition("@")[0]
    return niidpart.compose(strategy=strategy, like=like).strategy if strategy else peer
