"""How far a run is, on stderr."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import click

Metrics = dict[str, Any]
_TICKS = 1000  # of the bar, for each round


class Bar:
    """Progress on a terminal as a bar, elsewhere as a line a round.

    Always on stderr, so that stdout is for results. cells: runs side by side.
    """

    def __init__(self, cells: int = 1) -> None:
        self.cells = cells
        self.bar: Any = None
        self.shown = ""
        self.round = 0, 0
        self.heard: list[Metrics] = []  # of the round, of the cells that have told theirs

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.heard:
            self._end_line()
        if self.bar is not None:
            self.bar.__exit__(kind, error, trace)

    def __call__(self, p: Any) -> None:
        if p.told:
            click.echo(p.told, err=True)
            return
        if self.heard and p.round != self.round[0]:  # a cell that diverged tells nothing
            self._end_line()
        if p.metrics:
            self.round = p.round, p.rounds
            self.heard.append(p.metrics)
            if len(self.heard) == self.cells:
                self._end_line()
        if sys.stderr.isatty():
            self._draw(p)

    def _end_line(self) -> None:
        self.shown = f"round {self.round[0]}/{self.round[1]}  {format_round(self.heard)}"
        self.heard = []
        if not sys.stderr.isatty():
            click.echo(self.shown, err=True)

    def _draw(self, p: Any) -> None:
        if self.bar is None:
            length = p.rounds * _TICKS
            self.bar = click.progressbar(
                length=length, width=16, file=sys.stderr, item_show_func=str
            )
            self.bar.__enter__()
        if p.metrics:
            done = p.round * _TICKS
        else:
            done = (p.round - 1) * _TICKS + _TICKS * p.job // max(p.jobs, 1)
        self.bar.update(done - self.bar.pos, self.shown)


def format_round(cells: Sequence[Metrics]) -> str:
    """Return a round in words: test accuracy and training loss.

    Of several cells it is their range, and the mean accuracy.
    """
    accuracies = [100 * m["test_accuracy"] for m in cells if m.get("test_accuracy") is not None]
    losses = [m["train_loss"] for m in cells if m["train_loss"] is not None]
    words = []
    if len(cells) > 1:
        words.append(f"{len(cells)} cells")
    if accuracies:
        accuracy = f"test {_format_range(accuracies, '.2f', '%')}"
        if len(cells) > 1:
            accuracy += f", mean {sum(accuracies) / len(accuracies):.2f}%"
        words.append(accuracy)
    words.append(f"train loss {_format_range(losses, '.4g') if losses else 'not finite'}")
    return "  ".join(words)


def _format_range(values: Sequence[float], how: str, unit: str = "") -> str:
    low, high = (f"{value:{how}}{unit}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
