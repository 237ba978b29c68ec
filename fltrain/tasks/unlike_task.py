"""`UnlikeTask`: models of different shapes as one task, of which each party has one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

from .. import tree
from ..interface import Out
from ..tree import Tree
from .model_task import ModelTask
from .packing import Packing, describe_packings

MODEL = "model"  # among the buffers: the place of the model that they are of


@dataclass(frozen=True, eq=False)
class UnlikeTask(ModelTask):
    """Models of different shapes as one task.

    module: an nn.ModuleList of them. names: of each, for messages. of_party: for each party of
    the split the place of its model.

    The weights of a model lie in rows that are as long as the longest model needs, so what keeps,
    writes and sends them sees rows of one shape, whosever they are. Which model they are of stands
    among the buffers. A pass reads that on the host and runs this model alone, so jobs of such a
    task cannot be stacked.
    """

    names: tuple[str, ...] = ()
    of_party: tuple[int, ...] = ()
    parts: tuple[ModelTask, ...] = field(init=False)
    weights: tuple[Packing, ...] = field(init=False)  # of what is trained
    statistics: tuple[Packing, ...] = field(init=False)  # of buffers, and of what is frozen

    def __post_init__(self) -> None:
        parts = tuple(self._make_part(module) for module in self.module.children())
        trained, fixed = zip(*(part.split_weights() for part in parts), strict=True)
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "weights", describe_packings(trained))
        object.__setattr__(self, "statistics", describe_packings(fixed))
        # theirs, whose dropouts draw by a key
        object.__setattr__(self, "module", nn.ModuleList(part.module for part in parts))
        super().__post_init__()

    def _make_part(self, module: nn.Module) -> ModelTask:
        return ModelTask(
            module,
            self.loss,
            bf16=self.bf16,
            compiled=self.compiled,
            test_loss=self.test_loss,
            no_features=self.no_features,
        )

    def split_weights(self) -> tuple[Tree, Tree]:
        """Return the rows of the first model: what is trained, and the rest."""
        return self._pack_start(0)

    def make_starts(self) -> tuple[Tree, Tree]:
        """Return the rows of all models, leading axis M."""
        starts = [self._pack_start(place) for place in range(len(self.parts))]
        trained, fixed = zip(*starts, strict=True)
        return _stack(trained), _stack(fixed)

    def _pack_start(self, place: int) -> tuple[Tree, Tree]:
        trained, fixed = self.parts[place].split_weights()
        device = next(iter(trained.values())).device
        rows = self.weights[place].pack(trained, device)
        return rows, self._pack_statistics(fixed, torch.tensor(place, device=device), place)

    def _pack_statistics(self, fixed: Tree, model: Tensor, place: int) -> Tree:
        return {MODEL: model} | self.statistics[place].pack(fixed, model.device)

    def find_part(self, params: Tree, buffers: Tree) -> tuple[ModelTask, Tree, Tree]:
        """Return the model that rows are of, and its own parameters and buffers: views."""
        place = int(buffers[MODEL])  # the host waits for the device here
        own = self.weights[place].unpack(params), self.statistics[place].unpack(buffers)
        return self.parts[place], *own

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Name of each row -> other: it holds parameters of all kinds."""
        return dict.fromkeys(self.weights[0].lengths, "other")

    @cached_property
    def buffer_kinds(self) -> dict[str, str]:
        """Name of each row of buffers -> other."""
        return dict.fromkeys([MODEL, *self.statistics[0].lengths], "other")

    @property
    def n_stages(self) -> int:
        """How many taps the model with the fewest gives."""
        return min(part.n_stages for part in self.parts)

    @property
    def features_fault(self) -> str:
        """Why a model has no features, of the first that has none; "" where all have some."""
        for name, part in zip(self.names, self.parts, strict=True):
            if part.features_fault:
                return f"of {name}, {part.features_fault}"
        return ""

    @property
    def head(self) -> tuple[str, ...]:
        """(): the layers in a row have no names."""
        return ()

    def forward(
        self,
        params: Tree,
        buffers: Tree,
        x: Tensor,
        *,
        train: bool,
        key: int | Tensor | None = None,
        upto: int | None = None,
        detach: bool = False,
    ) -> Out:
        """Return the outputs of the model that the rows are of."""
        part, weights, fixed = self.find_part(params, buffers)
        out = part.forward(weights, fixed, x, train=train, key=key, upto=upto, detach=detach)
        if not train:
            return out._replace(buffers=buffers)
        place = self.parts.index(part)
        return out._replace(buffers=self._pack_statistics(out.buffers, buffers[MODEL], place))

    def require_logits(self, x: Tensor, n_classes: int) -> None:
        """Raise UsageError where a model does not turn examples x [B, ...] into [B, K]."""
        for part in self.parts:
            part.require_logits(x, n_classes)


def _stack(rows: Sequence[Tree]) -> Tree:
    """Return trees of one form as one, along a new leading axis."""
    return tree.map(lambda *leaves: torch.stack(leaves), *rows)
