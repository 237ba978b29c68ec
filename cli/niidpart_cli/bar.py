"""How far a run is, on stderr."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import click


class Bar:
    """Progress on a terminal as a bar, elsewhere as a line a round; always on stderr, so that stdout is for results. cells: runs side by side."""

    def __init__(self, cells: int = 1) -> None:
        self.cells = cells
        self.bar: Any = None
        self.shown = ""
        self.round = 0, 0
        self.heard: list[
            dict[str, Any]
        ] = []  # metrics of the round, of the cells that have told theirs

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.heard:
            self._line()
        if self.bar is not None:
            self.bar.__exit__(kind, error, trace)

    def __call__(self, p: Any) -> None:
        if p.told:
            click.echo(p.told, err=True)
            return
        if self.heard and p.round != self.round[0]:  # a cell that diverged tells nothing
            self._line()
        if p.metrics:
            self.round = p.round, p.rounds
            self.heard.append(p.metrics)
            if len(self.heard) == self.cells:
                self._line()
        if sys.stderr.isatty():
            self._drawn(p)

    def _line(self) -> None:
        self.shown = f"round {self.round[0]}/{self.round[1]}  {said(self.heard)}"
        self.heard = []
        if not sys.stderr.isatty():
            click.echo(self.shown, err=True)

    def _drawn(self, p: Any) -> None:
        if self.bar is None:
            self.bar = click.progressbar(
                length=p.rounds * 1000, width=16, file=sys.stderr, item_show_func=str
            )
            self.bar.__enter__()
        done = (
            p.round * 1000 if p.metrics else (p.round - 1) * 1000 + 1000 * p.job // max(p.jobs, 1)
        )
        self.bar.update(done - self.bar.pos, self.shown)


def said(cells: Sequence[dict[str, Any]]) -> str:
    """A round in words: test accuracy and training loss, of several cells their range, and the mean accuracy."""
    accuracies = [100 * m["test_accuracy"] for m in cells if m.get("test_accuracy") is not None]
    losses = [m["train_loss"] for m in cells if m["train_loss"] is not None]
    loss = (
        _range([f"{value:.4g}" for value in (min(losses), max(losses))]) if losses else "not finite"
    )
    accuracy = (
        f"test {_range([f'{value:.2f}%' for value in (min(accuracies), max(accuracies))])}"
        if accuracies
        else ""
    )
    if len(cells) > 1 and accuracies:
        accuracy += f", mean {sum(accuracies) / len(accuracies):.2f}%"
    return "  ".join(
        filter(
            None, [f"{len(cells)} cells" if len(cells) > 1 else "", accuracy, f"train loss {loss}"]
        )
    )


def _range(ends: list[str]) -> str:
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
